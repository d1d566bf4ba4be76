"""Experiments: what is to be compared. Bundled ones are TOML files; the command line makes them of its words."""

from __future__ import annotations

from datetime import UTC, datetime
from secrets import token_hex
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from clientlab import __version__, strategies
from clientlab.runs.document import Arm, AskedClaim, AxisValue, Figure, Run, Settings, Source, Surroundings
from clientlab.runs.expansion import Asked, expand, resolve, sweep_of
from clientlab.workload import Workload

MOST_CHARACTERS = 64
Route = Literal["direct", "proxy", "proxy-tls"]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class NamedArm(_Table):
    """An arm of its own name. What it does not name of workload, upstream and route, it does with all of them.

    A list as `concurrency`, or as a setting of the strategy, is an axis: an arm for each of its values.
    """

    strategy: str
    settings: dict[str, AxisValue | list[AxisValue]] = {}
    concurrency: int | list[int] | None = None
    workload: str | None = None
    upstream: str | None = None
    route: Route | None = None
    control: bool = False


class NamedClaim(_Table):
    """A claim as it is written: `a` and `b` name arms, ``SWEEP[first]`` and ``SWEEP[last]`` those of a sweep.

    ``{requests}`` in its text is the number that its arms do, which the quick form may change.
    """

    text: str
    kind: Literal["less", "ratio", "optimum", "spread", "narrower"]
    figure: Figure = "wall_seconds"
    a: str | None = None
    b: str | None = None
    c: str | None = None
    d: str | None = None
    sweep: str | None = None
    band: tuple[float, float] | None = None
    published: str | None = None
    control: bool = False

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        kinds = {"ratio": {"a", "b", "band"}, "optimum": {"sweep"}, "narrower": {"a", "b", "c", "d"}}
        needed = kinds.get(self.kind, {"a", "b"})
        given = {key for key in ("a", "b", "c", "d", "sweep", "band") if getattr(self, key) is not None}
        if needed != given:
            raise ValueError(f"a claim of kind {self.kind!r} is made of {', '.join(sorted(needed))}")
        if self.band and not 0 < self.band[0] < self.band[1]:
            raise ValueError("band: write the lower end first, and above 0")
        return self


class Parts(_Table):
    """What an experiment has, whether it is written in a file or made of words."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=MOST_CHARACTERS)
    question: str
    source: Source | None = None
    uncontrolled: list[str] = []
    baseline: str | None = None
    strategies: list[str] = []
    upstreams: list[str] = Field(default=["aiohttp"], min_length=1)
    workers: dict[str, int] = {}  # of an upstream, where not the lab but the source says how many
    routes: list[Route] = Field(default=["direct"], min_length=1)
    instead: dict[str, str] = {}  # strategy to what takes its place where it is not installed
    rounds: int = Field(default=3, ge=1)
    seed: int = 1
    named_arms: dict[str, NamedArm] = Field(default={}, alias="arms")
    claims: dict[str, NamedClaim] = {}

    @model_validator(mode="after")
    def _has_arms(self) -> Self:
        if not self.strategies and not self.named_arms:
            raise ValueError("strategies: name some, or write [arms.NAME]")
        return self


class Experiment(Parts):
    """Workloads × strategies × upstreams × routes × axes, in rounds.

    `axes`: workload → field → values, of which the workload itself holds the first. `shortened`: what the quick
    form changed, `changed`: what the command line did. `left_out`: strategy that can't be loaded → why. `precision`
    and `time_budget` (seconds): rounds are added until either is reached.
    """

    workloads: dict[str, Workload] = Field(min_length=1)
    axes: dict[str, dict[str, list[AxisValue]]] = {}
    shortened: list[str] = []
    changed: list[str] = []
    left_out: dict[str, str] = {}
    precision: float | None = None
    time_budget: float | None = None

    def arms(self) -> list[Arm]:
        """Every combination: workloads, upstreams and routes in the order written, in each all arms."""
        return [arm for arm, _ in self.expanded()]

    def expanded(self) -> list[tuple[Arm, Workload]]:
        """Every arm with the workload that it does."""
        listed = [Asked(strategy, strategy, {}) for strategy in self.strategies]
        named = [_asked(name, arm) for name, arm in self.named_arms.items()]
        return expand([*listed, *named], self.workloads, self.axes, self.upstreams, self.routes)

    def without(self, left_out: dict[str, str]) -> Experiment:
        """The same without these of its strategies, whose reasons it keeps."""
        names = [name for name in self.strategies if name not in left_out]
        return self.model_copy(update={"strategies": names, "left_out": left_out})

    def asked_claims(self) -> list[AskedClaim]:
        """The claims, with the arms' full names. Raises BadExperiment for one that names a missing arm."""
        expanded = self.expanded()
        arms, workloads = [arm for arm, _ in expanded], {arm.name: workload for arm, workload in expanded}
        return [_asked_claim(name, claim, arms, workloads) for name, claim in self.claims.items()]

    def most_in_flight(self) -> int:
        """The largest number of requests that any of its trials has in flight at once."""
        return max(
            strategies.find(arm.strategy).in_flight(workload.concurrency, workload.requests)
            for arm, workload in self.expanded()
        )


def _asked(name: str, arm: NamedArm) -> Asked:
    return Asked(name, arm.strategy, arm.settings, arm.concurrency, arm.workload, arm.upstream, arm.route, arm.control)


def _asked_claim(name: str, claim: NamedClaim, arms: list[Arm], workloads: dict[str, Workload]) -> AskedClaim:
    key = ("claims", name)
    asked = AskedClaim(
        name=name,
        a=claim.a and resolve(claim.a, arms, (*key, "a")),
        b=claim.b and resolve(claim.b, arms, (*key, "b")),
        c=claim.c and resolve(claim.c, arms, (*key, "c")),
        d=claim.d and resolve(claim.d, arms, (*key, "d")),
        arms=sweep_of(claim.sweep, arms, (*key, "sweep")) if claim.sweep else [],
        **claim.model_dump(exclude={*"abcd", "sweep"}),
    )
    requests = workloads[asked.a or asked.arms[0]].requests
    number = "as many" if requests is None else f"{requests:,}"
    return asked.model_copy(update={"text": asked.text.replace("{requests}", number)})


def with_available(experiment: Experiment) -> Experiment:
    """The experiment with another strategy in place of each that is not installed and for which it names one."""
    swap = {name: other for name, other in experiment.instead.items() if strategies.unavailable(strategies.find(name))}
    arms = {
        name: arm.model_copy(update={"strategy": swap.get(arm.strategy, arm.strategy)})
        for name, arm in experiment.named_arms.items()
    }
    names = [swap.get(name, name) for name in experiment.strategies]
    return experiment.model_copy(update={"strategies": names, "named_arms": arms})


def _replaced(experiment: Experiment, arms: list[Arm]) -> dict[str, str]:
    """Strategy → the one that has taken its place."""
    there = {arm.strategy for arm in arms}
    return {name: other for name, other in experiment.instead.items() if name not in there and other in there}


def run_name(experiment: Experiment | Settings) -> str:
    """A name for a run that begins now; the names of runs sort by time."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%d-%H%M%S}{now.microsecond // 1000:03}-{experiment.name}-{token_hex(2)}"


def new_run(name: str, experiment: Experiment, surroundings: Surroundings, command: str) -> Run:
    """A run of the experiment that has not begun."""
    expanded = experiment.expanded()
    arms = [arm for arm, _ in expanded]
    shared = experiment.model_dump(
        include={
            "name", "question", "rounds", "seed", "precision", "time_budget", "uncontrolled", "workers", "shortened",
            "changed", "left_out",
        }
    )  # fmt: skip
    return Run(
        run=name,
        clientlab=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        status="running",
        experiment=Settings(
            **shared,
            arms=arms,
            baseline=experiment.baseline and resolve(experiment.baseline, arms, ("baseline",)),
            workloads={arm.workload: workload for arm, workload in expanded},
            source=experiment.source,
            claims=experiment.asked_claims(),
            replaced=_replaced(experiment, arms),
            command=command,
        ),
        surroundings=surroundings,
    )
