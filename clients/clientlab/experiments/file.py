"""Reading experiments from TOML files, in full or in their quick form."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from clientlab.errors import FieldError, FieldKey, LabError
from clientlab.experiments.experiment import ArmTable, ClaimTable, Experiment, FileTables, WorkloadTable, each_once
from clientlab.experiments.planning import make_plan
from clientlab.nearest import nearest
from clientlab.results.plan import Claim, EnvironmentSpec, Plan, Source
from clientlab.strategies.plugins import file_of, pair_of
from clientlab.validation import validated
from clientlab.workload.delays import time_without_unit
from clientlab.workload.link import LINK_PARTS
from clientlab.workload.workload import Workload
from clientlab.workload.written import text_of

_Fields = dict[str, Any]

_NO_AXIS = (
    "headers", "body", "replay", "replay_sha256", "seed", "timeout", "deadline", "request_limit", "memory_limit",
    "warmup",
)  # fmt: skip
"""Fields of a workload that are equal for all arms, or hold several values."""

_TIMES = ("delay", "duration", "timeout", "deadline", "request_limit", "max_late", "stages", "rtt", "budget")
"""Keys whose times need a unit in a file, where `delay = 20` looks like milliseconds and would mean 20 s."""

_KEYS = frozenset(
    {one.name for one in fields(Workload)}.union(
        *(model.model_fields for model in (Experiment, FileTables, ArmTable, ClaimTable, EnvironmentSpec, Source))
    )
)
"""All keys of a file, for hints about an unknown one."""


@dataclass(frozen=True)
class ExperimentFile:
    """A file's experiment, in full or in its quick form. `shortened`: what the quick form changed."""

    path: Path
    experiment: Experiment
    shortened: tuple[str, ...] = ()

    def plan(self) -> Plan:
        """Return the plan of a run. No strategy is loaded. Raises LabError that names the file and the key."""
        try:
            return make_plan(self.experiment, shortened=list(self.shortened))
        except FieldError as error:
            raise LabError(f"{self.path}: {error}") from error


def bundled() -> dict[str, Path]:
    """Return the files of the experiments that come with the lab, by name."""
    folder = Path(str(files("clientlab"))) / "experiments"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def path_of(name: str) -> Path:
    """Return the file of a bundled experiment, or the file of that path. Raises LabError."""
    path = bundled().get(name, Path(name))
    if not path.is_file():
        known = ", ".join(bundled())
        raise LabError(f"experiment {name!r}: neither a bundled one ({known}) nor a file{nearest(name, bundled())}")
    return path


def has_quick(path: Path) -> bool:
    """Whether a file has a quick form."""
    return "quick" in _parsed(path)


def read_plan(path: Path, *, quick: bool = False) -> Plan:
    """Return the plan of a run of a file's experiment. No strategy is loaded. Raises LabError."""
    return read_experiment(path, quick=quick).plan()


def read_experiment(path: Path, *, quick: bool = False) -> ExperimentFile:
    """Read a TOML file. Raises LabError that names the file and the key."""
    document = _parsed(path)
    full = ExperimentFile(path, _experiment(path, document))
    if not quick:
        return full
    if "quick" not in document:
        raise LabError(f"{path}: it has no quick form; write one in [quick]")
    shortened: list[str] = []
    experiment = _experiment(path, _merged(document, document["quick"], shortened))
    for part in ("workloads", "arms"):
        if new := getattr(experiment, part).keys() - getattr(full.experiment, part):
            raise LabError(f"{path}: quick.{part}.{min(new)}: there is no [{part}.{min(new)}]")
    other = _claims_about_others(full.plan(), ExperimentFile(path, experiment).plan())
    shortened += [f"claims.{name}: judged → not judged, because its arms differ" for name in other]
    claims = {name: claim for name, claim in experiment.claims.items() if name not in other}
    return ExperimentFile(path, experiment.changed(claims=claims), tuple(shortened))


def _parsed(path: Path) -> _Fields:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _merged(document: _Fields, changes: _Fields, shortened: list[str], within: str = "") -> _Fields:
    """Return a table with the changes of the quick form, which are added to `shortened`. Tables are merged."""
    merged = dict(document)
    for key, value in changes.items():
        was = merged.get(key, {} if isinstance(value, dict) else "not written")
        if isinstance(value, dict) and isinstance(was, dict):
            merged[key] = _merged(was, value, shortened, f"{within}{key}.")
        elif value != was:
            shortened.append(f"{within}{key}: {was} → {value}")
            merged[key] = value
    return merged


def _claims_about_others(full: Plan, quick: Plan) -> Collection[str]:
    """Return the claims whose arms have another link or concurrency in the quick form than in the full one.

    Their texts may name these. A claim about a sweep is about whichever points it has.
    """

    def conditions(plan: Plan, claim: Claim) -> list[object]:
        arms = {arm.name: (arm.link, plan.workloads[arm.workload].concurrency) for arm in plan.arms}
        return [arms.get(getattr(claim, key)) for key in "abcd"]

    claims = zip(full.claims, quick.claims, strict=True)
    return [one.name for one, other in claims if conditions(full, one) != conditions(quick, other)]


def _experiment(path: Path, document: _Fields) -> Experiment:
    """Return a document as an experiment, whose relative paths start at the folder of its file. Raises LabError."""
    try:
        tables = validated(FileTables.model_validate, document, _KEYS)
        _check_units(document)
        workloads = {name: _workload(name, tables.common, own) for name, own in tables.workloads.items()}
        rest = {key: value for key, value in document.items() if key not in FileTables.model_fields}
        whole = {"name": path.stem, **rest, "workloads": workloads}
        return _anchored(validated(Experiment.model_validate, whole, _KEYS), path.parent)
    except FieldError as error:
        if error.key == ("name",) and "name" not in document:
            message = 'the file names the experiment; rename it, or write name = "..." in it'
            raise LabError(f"{path}: {error.message}: {message}") from error
        raise LabError(f"{path}: {error}") from error


def _check_units(table: _Fields, key: FieldKey = ()) -> None:
    """Raise FieldError for a time without a unit in a table and its tables."""
    for name, value in table.items():
        if isinstance(value, dict) and name not in {"headers", "settings"}:
            _check_units(value, (*key, name))
        elif name in _TIMES:
            for text in map(text_of, value if isinstance(value, list) else [value]):
                times = [part.partition(":")[0] for part in text.split(",")] if name == "stages" else [text]
                if bare := next(filter(None, map(time_without_unit, times)), None):
                    raise FieldError((*key, name), f"{bare} has no unit; write {bare}ms or {bare}s")


def _workload(name: str, common: _Fields, table: _Fields) -> WorkloadTable:
    """Return a workload, with every value of its axes checked. Raises FieldError at the place in the file."""
    fields = common | table
    link = {field: fields[field] for field in LINK_PARTS if field in fields}
    own = {field: value for field, value in fields.items() if field not in link}
    axes = {field: value for field, value in own.items() if isinstance(value, list)}
    try:
        for field, values in axes.items():
            if field in _NO_AXIS:
                raise FieldError([field], "it can't be an axis; write one value")
            try:
                each_once(values)
            except ValueError as error:
                raise FieldError([field], str(error)) from error

        def with_first(fields: _Fields) -> WorkloadTable:
            return validated(lambda first: WorkloadTable.model_validate({"first": first}), fields, _KEYS)

        first = own | {field: values[0] for field, values in axes.items()}
        for field, values in axes.items():
            for value in values:
                with_first({**first, field: value})
        return validated(WorkloadTable.model_validate, {"first": with_first(first).first, "axes": axes, **link})
    except FieldError as error:
        shared = set(error.key[:1]) & (common.keys() - table.keys())
        raise error.within(*(["common"] if shared else ["workloads", name])) from error


def _anchored(experiment: Experiment, folder: Path) -> Experiment:
    """Return the experiment with absolute paths. Trials run in folders of their own."""

    def strategy(name: str) -> str:
        if ".py:" not in name:
            return name
        plain, mark, settings = name.partition("?")
        parts = (str(folder / part) if file_of(part) else part for part in pair_of(plain) if part)
        return "@".join(parts) + mark + settings

    def workload(table: WorkloadTable) -> WorkloadTable:
        if table.first.replay is None:
            return table
        first = replace(table.first, replay=str((folder / table.first.replay).resolve()))
        return table.model_copy(update={"first": first})

    def environment(spec: EnvironmentSpec) -> EnvironmentSpec:
        found = None if spec.folder is None else str(folder.absolute() / Path(spec.folder).expanduser())
        requirements = [
            str((folder / Path(one).expanduser()).resolve()) if one.startswith((".", "/", "~")) else one
            for one in spec.requirements
        ]
        return spec.model_copy(update={"folder": found, "requirements": requirements})

    arms = {name: arm.model_copy(update={"strategy": strategy(arm.strategy)}) for name, arm in experiment.arms.items()}
    return experiment.model_copy(
        update={
            "strategies": list(map(strategy, experiment.strategies)),
            "arms": arms,
            "workloads": {name: workload(table) for name, table in experiment.workloads.items()},
            "environments": {name: environment(spec) for name, spec in experiment.environments.items()},
        }
    )


def articles() -> dict[str, list[str]]:
    """Return the bundled experiments with a published source that have a strategy in an arm, by strategy.

    Settings and control arms do not count: the lab added these arms.
    """
    found: dict[str, list[str]] = {}
    for name, path in bundled().items():
        plan = read_plan(path)
        if plan.source:
            for strategy in {arm.strategy.partition("?")[0] for arm in plan.arms if not arm.control}:
                found.setdefault(strategy, []).append(name)
    return found
