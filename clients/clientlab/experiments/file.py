"""Reading experiments from TOML files, in full or in their quick form."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from clientlab.errors import FieldError, FieldKey, LabError
from clientlab.experiments.experiment import (
    NAME,
    ArmTable,
    ClaimTable,
    Experiment,
    WorkloadTable,
    check_axis,
    validate_workload,
)
from clientlab.experiments.planning import make_plan
from clientlab.results.plan import (
    OWN_UPSTREAM,
    EnvironmentSpec,
    Plan,
    RunSettings,
    Source,
)
from clientlab.strategies import file_of, split_pair
from clientlab.text import suggest_nearest
from clientlab.validation import unknown_key, validate
from clientlab.workload.values import LINK_PARTS, find_time_without_unit, text_of
from clientlab.workload.workload import FIELDS, PARTS, Workload, names_of

_Fields = dict[str, Any]

_NO_AXIS = names_of("replay", "limits") | {
    "headers",
    "body",
    "body_base64",
    "seed",
    "warmup",
    "expect",
    "cold",
}
"""Fields of a workload that hold several values, or are equal for all arms."""

_TIMES = {"rtt"}.union(
    name
    for table in (Workload, *PARTS.values(), RunSettings)
    for name, kind in table.__annotations__.items()
    if re.search(r"\b(Time|Delay|Stages)\b", kind)
)
"""Keys whose times need a unit: `delay = 20` looks like milliseconds and would mean 20
s.
"""


class FileTables(BaseModel):
    """The tables of a file that are combined before they make an experiment."""

    common: dict[str, Any] = {}  # fields for workloads that do not set them
    workloads: dict[str, dict[str, Any]] = {}
    quick: dict[str, Any] = {}  # values of the quick form


_KEYS = frozenset(FIELDS).union(
    *(
        model.model_fields
        for model in (
            Experiment,
            FileTables,
            ArmTable,
            ClaimTable,
            EnvironmentSpec,
            Source,
        )
    )
) - {"shortened"}
"""All keys that a file can have, for hints about an unknown one."""


def bundled() -> dict[str, Path]:
    """Return the files of the experiments that come with the lab, by name."""
    return {path.stem: path for path in sorted(Path(__file__).parent.glob("*.toml"))}


def path_of(name: str) -> Path:
    """Return the file of a bundled experiment, or the file at that path.

    Raise LabError.
    """
    known = bundled()
    path = known.get(name, Path(name))
    if not path.is_file():
        hint = suggest_nearest(name, known)
        raise LabError(
            f"experiment {name!r}: neither a bundled one ({', '.join(known)}) nor a"
            f" file{hint}"
        )
    return path


def read_plan(path: Path, *, quick: bool = False) -> Plan:
    """Return the plan of a run of a file.

    No strategy is loaded. Raise LabError that names the file and the key.
    """
    try:
        return make_plan(read_experiment(path, quick=quick))
    except FieldError as error:
        raise LabError(f"{path}: {error}") from error


def read_experiment(path: Path, *, quick: bool = False) -> Experiment:
    """Read a TOML file, in full or in its quick form.

    Raise LabError that names the file and the key.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(
            f"{path}: {getattr(error, 'strerror', None) or error}"
        ) from error
    try:
        full = _make_experiment(path, document)
        if not quick:
            return full
        if "quick" not in document:
            raise FieldError([], "it has no quick form; write one in [quick]")
        shortened: list[str] = []
        experiment = _make_experiment(
            path, _merge(document, document["quick"], shortened)
        )
        for part in ("workloads", "arms", "claims"):
            if new := getattr(experiment, part).keys() - getattr(full, part):
                raise FieldError(
                    ["quick", part, min(new)], f"there is no [{part}.{min(new)}]"
                )
        conditions, quick_conditions = (
            _claim_conditions(full),
            _claim_conditions(experiment),
        )
    except FieldError as error:
        raise LabError(f"{path}: {error}") from error
    # The text of a claim may name the link or the concurrency of its arms.
    claims = {
        name: claim
        for name, claim in experiment.claims.items()
        if conditions[name] == quick_conditions[name]
    }
    left_out = [name for name in experiment.claims if name not in claims]
    shortened += [
        f"claims.{name}: judged → not judged, because its arms differ"
        for name in left_out
    ]
    return experiment.changed(claims=claims, shortened=shortened)


def _merge(
    document: _Fields, changes: _Fields, shortened: list[str], within: str = ""
) -> _Fields:
    """Return a table with the changes of the quick form, each of which is added to
    `shortened`.
    """
    merged = dict(document)
    for key, value in changes.items():
        was = merged.get(key, {} if isinstance(value, dict) else "not written")
        if isinstance(value, dict) and isinstance(was, dict):
            merged[key] = _merge(was, value, shortened, f"{within}{key}.")
        elif value != was:
            shortened.append(f"{within}{key}: {was} → {value}")
            merged[key] = value
    return merged


def _claim_conditions(experiment: Experiment) -> dict[str, list[object]]:
    """Return the link and the concurrency of the arms that each claim names, not those
    of a sweep.
    """
    plan = make_plan(experiment)
    arms = {
        arm.name: (arm.link, plan.workloads[arm.workload].load.concurrency)
        for arm in plan.arms
    }
    return {
        claim.name: [arms.get(getattr(claim, key)) for key in "abcd"]
        for claim in plan.claims
    }


def _make_experiment(path: Path, document: _Fields) -> Experiment:
    if "name" not in document and not re.fullmatch(NAME, path.stem):
        raise FieldError(
            [],
            'an experiment is named after its file; rename it, or write name = "..."'
            " in it",
        )
    if "shortened" in document:
        raise FieldError(["shortened"], "unknown key")
    tables = validate(FileTables.model_validate, document)
    _check_units(document)
    workloads = {
        name: _make_workload(name, tables.common, own)
        for name, own in tables.workloads.items()
    }
    rest = {
        key: value
        for key, value in document.items()
        if key not in FileTables.model_fields
    }
    if rest.get("servers") == {}:
        raise FieldError(
            ["servers"], "it names no server; write one, or leave the table out"
        )
    if "servers" in rest:
        rest.setdefault("upstreams", [OWN_UPSTREAM])
    whole = {"name": path.stem, **rest, "workloads": workloads}
    experiment = validate(
        lambda tables: Experiment.model_validate(tables, extra="forbid"), whole, _KEYS
    )
    return _with_absolute_paths(experiment, path.parent)


def _check_units(table: _Fields, key: FieldKey = ()) -> None:
    """Raise FieldError for a time without a unit in a table, or in a table
    within it.
    """
    for name, value in table.items():
        if isinstance(value, dict) and name not in {"headers", "settings"}:
            _check_units(value, (*key, name))
        elif name in _TIMES:
            for text in map(text_of, value if isinstance(value, list) else [value]):
                times = (
                    [part.partition(":")[0] for part in text.split(",")]
                    if name == "stages"
                    else [text]
                )
                if bare := next(filter(None, map(find_time_without_unit, times)), None):
                    raise FieldError(
                        (*key, name), f"{bare} has no unit; write {bare}ms or {bare}s"
                    )


def _make_workload(name: str, common: _Fields, table: _Fields) -> WorkloadTable:
    """Return a workload with every value of its axes checked.

    Raise FieldError at its place in the file.
    """
    own = common | table
    link = {part: own.pop(part) for part in LINK_PARTS if part in own}
    axes = {field: value for field, value in own.items() if isinstance(value, list)}
    try:
        for field, values in axes.items():
            try:
                check_axis(values)
            except ValueError as error:
                raise FieldError([field], str(error)) from error
            if field in _NO_AXIS:
                raise FieldError([field], "it cannot be an axis; write one value")
        first = own | {field: values[0] for field, values in axes.items()}
        points = [
            first,
            *(
                first | {field: value}
                for field, values in axes.items()
                for value in values
            ),
        ]
        for key in first:
            if key not in FIELDS:
                raise unknown_key([key], _KEYS)
        checked = [validate_workload(point) for point in points]
        return validate(
            WorkloadTable.model_validate, {"first": checked[0], "axes": axes, **link}
        )
    except FieldError as error:
        shared = set(error.key[:1]) & (common.keys() - table.keys())
        raise error.within(*(["common"] if shared else ["workloads", name])) from error


def _with_absolute_paths(experiment: Experiment, folder: Path) -> Experiment:
    """Return the experiment with absolute paths, because trials run in
    other folders.
    """
    arms = {}
    for name, arm in experiment.arms.items():
        strategy = _resolve_strategy(arm.strategy, folder, ["arms", name, "strategy"])
        arms[name] = arm.model_copy(update={"strategy": strategy})
    workloads = dict(experiment.workloads)
    for name, table in experiment.workloads.items():
        replay = table.first.replay
        if replay is not None:
            file = str((folder / replay.file).resolve())
            first = replace(table.first, replay=replace(replay, file=file))
            workloads[name] = table.model_copy(update={"first": first})
    changes = {
        "strategies": [
            _resolve_strategy(name, folder, ["strategies"])
            for name in experiment.strategies
        ],
        "arms": arms,
        "workloads": workloads,
        "environments": {
            name: _resolve_environment(spec, folder)
            for name, spec in experiment.environments.items()
        },
    }
    return experiment.model_copy(update=changes)


def _resolve_strategy(strategy: str, folder: Path, key: FieldKey) -> str:
    plain, mark, settings = strategy.partition("?")
    parts = []
    for part in filter(None, split_pair(plain)):
        if file_of(part) is None:
            parts.append(part)
            continue
        path = str(folder / part)
        file = file_of(path)
        if file is None or not file.is_file():
            message = (
                f"there is no file {file}; write its path from the folder of this file"
            )
            raise FieldError(key, message)
        parts.append(path)
    return "@".join(parts) + mark + settings


def _resolve_environment(spec: EnvironmentSpec, folder: Path) -> EnvironmentSpec:
    own_folder = spec.folder
    if own_folder is not None:
        own_folder = str(folder.absolute() / Path(own_folder).expanduser())
    requirements = []
    for requirement in spec.requirements:
        if requirement.startswith((".", "/", "~")):
            path = folder / Path(requirement).expanduser()
            requirements.append(str(path.resolve()))
        else:
            requirements.append(requirement)
    return spec.model_copy(update={"folder": own_folder, "requirements": requirements})


def articles() -> dict[str, list[str]]:
    """Return the names of the bundled experiments that reproduce a publication, by the
    strategies in their arms.

    Control arms and settings do not count: the lab added them.
    """
    found: dict[str, list[str]] = {}
    for name, path in bundled().items():
        plan = read_plan(path)
        if plan.source:
            for strategy in {
                arm.strategy.partition("?")[0] for arm in plan.arms if not arm.control
            }:
                found.setdefault(strategy, []).append(name)
    return found
