"""Experiments: what is to be compared. Bundled ones are TOML files; the command line makes them of its words."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from secrets import token_hex
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clientlab import __version__, strategies
from clientlab.errors import LabError
from clientlab.runs.document import Arm, Run, Settings, Surroundings
from clientlab.workload import Workload, check

MOST_CHARACTERS = 64
TLS_ROUTES = frozenset({"proxy-tls"})


class Experiment(BaseModel):
    """Workloads × strategies × upstreams × routes, in rounds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=MOST_CHARACTERS)
    question: str
    strategies: list[str] = Field(min_length=1)
    upstreams: list[str] = Field(default=["aiohttp"], min_length=1)
    routes: list[Literal["direct", "proxy", "proxy-tls"]] = Field(default=["direct"], min_length=1)
    rounds: int = Field(default=3, ge=1)
    seed: int = 1
    workloads: dict[str, Workload] = Field(min_length=1)

    def arms(self) -> list[Arm]:
        """Every combination, in the order written."""
        parts: tuple[Collection[str], ...] = (self.workloads, self.upstreams, self.routes)
        return [
            Arm(
                name=_arm_name(strategy, [p for p, all_ in zip(way, parts, strict=True) if len(all_) > 1]),
                strategy=strategy,
                workload=way[0],
                upstream=way[1],
                route=way[2],
            )
            for way in itertools.product(*parts)
            for strategy in self.strategies
        ]

    def most_in_flight(self) -> int:
        """The largest number of requests that any of its trials has in flight at once."""
        return max(
            strategies.find(arm.strategy).in_flight(workload.concurrency, workload.requests)
            for arm in self.arms()
            for workload in [self.workloads[arm.workload]]
        )


def _arm_name(strategy: str, varied: list[str]) -> str:
    """A strategy's own name where it stands once, else with what tells its arms apart."""
    return strategy if not varied else f"{strategy} ({', '.join(varied)})"


def check_experiment(experiment: Experiment, secure: Collection[str] = TLS_ROUTES) -> None:
    """Raises LabError for an unknown strategy, a workload that can't be, or a pair that does not fit.

    `secure`: the routes that have TLS.
    """
    for workload in experiment.workloads.values():
        check(workload)
        for name in experiment.strategies:
            strategy = strategies.find(name)
            strategies.check_settings(strategy)
            strategies.check_abilities(strategy, workload)
            row = strategies.executor_row(strategy.executor)
            if row.counted and workload.requests is None:
                raise LabError(
                    f"strategy {name!r} starts all its requests at once and can't run for a duration; "
                    "give it a number of requests with -n"
                )
    _check_versions(experiment, secure)
    parts: dict[str, Sequence[str]] = {
        "strategy": experiment.strategies,
        "upstream": experiment.upstreams,
        "route": experiment.routes,
    }
    for part, names in parts.items():
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise LabError(f"{part} {twice!r} is asked for twice; name each once, and repeat it with --rounds")


def _check_versions(experiment: Experiment, secure: Collection[str]) -> None:
    plain = next((route for route in experiment.routes if route not in secure), None)
    for name in experiment.strategies:
        if plain is not None and strategies.client_row(strategies.find(name).client).http == "2":
            raise LabError(
                f"strategy {name!r} speaks HTTP/2, which needs TLS, and the route {plain} has none; "
                "give it a run with --route proxy-tls alone, or an https:// address with --url"
            )


def bundled() -> dict[str, Path]:
    """Name → file of the experiments that come with the lab."""
    folder = Path(str(files("clientlab"))) / "experiments"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def read_experiment(path: Path) -> Experiment:
    """Read a TOML file. Raises LabError that names file and key."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise LabError(f"{path}: {error}") from error
    try:
        return Experiment.model_validate({"name": path.stem, **document})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise LabError(f"{path}: {where}: {first['msg']}") from error


def run_name(experiment: Experiment | Settings) -> str:
    """A name for a run that begins now; the names of runs sort by time."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%d-%H%M%S}{now.microsecond // 1000:03}-{experiment.name}-{token_hex(2)}"


def new_run(name: str, experiment: Experiment, surroundings: Surroundings, command: str) -> Run:
    """A run of the experiment that has not begun."""
    return Run(
        run=name,
        clientlab=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        status="running",
        experiment=Settings(
            name=experiment.name,
            question=experiment.question,
            rounds=experiment.rounds,
            seed=experiment.seed,
            arms=experiment.arms(),
            workloads=experiment.workloads,
            command=command,
        ),
        surroundings=surroundings,
    )
