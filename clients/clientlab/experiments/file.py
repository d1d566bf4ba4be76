"""Reading experiments from TOML files, in full or in their quick form, with the line of a wrong key.

Errors name the line, which is looked for in the text: the standard library's parser reports no positions.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Unpack

from clientlab.errors import FieldError, FieldKey, LabError
from clientlab.experiments.checks import available_part, check_plan
from clientlab.experiments.experiment import Experiment, FileTables, WorkloadTable, unquoted
from clientlab.experiments.planning import Circumstances, make_plan
from clientlab.experiments.refusals import checked
from clientlab.nearest import nearest
from clientlab.printable import printable
from clientlab.results.plan import Claim, Plan
from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.known import file_of, pair_of
from clientlab.workload.delays import time_without_unit
from clientlab.workload.link import LINK_PARTS
from clientlab.workload.written import text_of

_MOST_LINES = 1_000
"""Each line is read with all lines before it. The longest experiment of the lab has 436."""


def line_of(text: str, key: FieldKey) -> int | None:
    """The line, from 1, of the statement that defines `key`; None where no part of the key exists, or in long texts.

    The parser itself finds it: the text grows line by line, and the statement lies between the last text without the
    key and the first text with it. For a missing key, the line is that of its table.
    """
    lines = text.splitlines(keepends=True)
    if len(lines) > _MOST_LINES:
        return None
    for length in range(len(key), 0, -1):
        before = 0
        for end in range(1, len(lines) + 1):
            try:
                document = tomllib.loads("".join(lines[:end]))
            except tomllib.TOMLDecodeError:
                continue  # within a value of several lines
            if has(document, key[:length]):
                return before + 1
            before = end
    return None


def has(document: Any, key: FieldKey) -> bool:
    """Whether a document has a value at that path."""
    found = document
    for part in key:
        places = range(len(found)) if isinstance(found, list) else found if isinstance(found, dict) else ()
        if part not in places:
            return False
        found = found[part]
    return True


_FIXED = frozenset(
    {
        "headers",
        "body",
        "replay",
        "replay_sha256",
        "seed",
        "timeout",
        "deadline",
        "request_limit",
        "memory_limit",
        "warmup",
    }
)
"""Fields of a workload that cannot be an axis: they have to be equal for all arms, or hold several values."""

_TIMES = ("delay", "duration", "timeout", "deadline", "request_limit", "max_late", "stages", "rtt", "budget")
"""Keys whose times need a unit in a file, where `delay = 20` looks like milliseconds and would mean 20 s."""

_Fields = dict[str, Any]


@dataclass(frozen=True)
class ExperimentFile:
    """A TOML file with an experiment, read in full or in its quick form.

    `text` and `document` are the file as it stands; `shortened` is what the quick form changed.
    """

    path: Path
    text: str
    document: _Fields
    experiment: Experiment
    shortened: tuple[str, ...] = ()

    def plan(self, **circumstances: Unpack[Circumstances]) -> Plan:
        """The plan of a run. Raises LabError that names file, line and key."""
        circumstances.setdefault("shortened", list(self.shortened))
        try:
            return make_plan(self.experiment, **circumstances)
        except FieldError as error:
            raise self.located(error) from error

    @property
    def is_bundled(self) -> bool:
        """Whether the file comes with the lab."""
        return self.path in bundled().values()

    def checked_plan(self, *, named: bool = False, **circumstances: Unpack[Circumstances]) -> Plan:
        """The plan of a run that can be carried out. Loads the strategies. Raises LabError as `plan` does.

        A bundled experiment leaves out the arms that this machine cannot run. `named`: the user named its strategies,
        so it leaves out none.
        """
        plan = self.plan(**circumstances)
        if self.is_bundled and not named:
            plan = available_part(plan)
        try:
            check_plan(plan, self.experiment)
        except FieldError as error:
            raise self.located(error) from error
        return plan

    def located(self, error: FieldError) -> LabError:
        """The error with the file and the line of its field, which may stand in ``[common]`` or in ``[quick]``."""
        keys: list[FieldKey] = [error.key]
        if error.key[:1] == ("workloads",):
            keys.append(("common", *error.key[2:]))
        if self.shortened:
            keys = [*(("quick", *key) for key in keys), *keys]
        key = next((key for key in keys if has(self.document, key)), error.key)
        return _wrong(self.path, self.text, error.at(key))


def bundled() -> dict[str, Path]:
    """Name → file of the experiments that come with the lab."""
    folder = Path(str(files("clientlab"))) / "experiments"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def path_of(name: str) -> Path:
    """The file of a bundled experiment's name, or the file of that path. Raises LabError."""
    path = bundled().get(name, Path(name))
    if not path.is_file():
        raise LabError(
            f"experiment {name!r}: neither a bundled one ({', '.join(bundled())}) nor a file{nearest(name, bundled())}"
        )
    return path


def has_quick(path: Path) -> bool:
    """Whether a file has a quick form."""
    return "quick" in _parsed(path, _text_of(path))


def read_plan(path: Path, *, quick: bool = False) -> Plan:
    """The plan of a run of a file's experiment. No strategy is loaded. Raises LabError."""
    return read_experiment(path, quick=quick).plan()


def read_experiment(path: Path, *, quick: bool = False, rounds: int | None = None) -> ExperimentFile:
    """Read a TOML file. `rounds`: in place of its own. Raises LabError that names file, line and key."""
    text = _text_of(path)
    document = _parsed(path, text)
    experiment = _located(path, text, (), document)
    shortened: tuple[str, ...] = ()
    if quick:
        changes = _quick_changes(path, text, document)
        shortened = tuple(f"{where}: {was} → {now}" for where, was, now in _changed(document, changes))
        full = ExperimentFile(path, text, document, experiment).plan()
        experiment = _located(path, text, ("quick",), _merged(document, changes))
        other = _claims_about_others(full, ExperimentFile(path, text, document, experiment, shortened).plan())
        shortened += tuple(f"claims.{name}: judged → not judged, because its arms differ" for name in other)
        claims = {name: claim for name, claim in experiment.claims.items() if name not in other}
        experiment = experiment.changed(claims=claims)
    if rounds is not None:
        experiment = experiment.changed(rounds=rounds, budget=None)
    return ExperimentFile(path, text, document, experiment, shortened)


def _claims_about_others(full: Plan, quick: Plan) -> list[str]:
    """Return the claims whose arms have another link or concurrency in the quick form than in the full one.

    Their texts may name these. A claim about a sweep is about whichever points it has.
    """
    return [
        claim.name
        for claim, shorter in zip(full.claims, quick.claims, strict=True)
        if [_conditions(full, claim, key) for key in "abcd"] != [_conditions(quick, shorter, key) for key in "abcd"]
    ]


def _conditions(plan: Plan, claim: Claim, key: str) -> object:
    arm = next((arm for arm in plan.arms if arm.name == getattr(claim, key)), None)
    return arm and (arm.link, plan.workloads[arm.workload].concurrency)


def _quick_changes(path: Path, text: str, document: _Fields) -> _Fields:
    if "quick" not in document:
        raise LabError(f"{path}: it has no quick form; write one in [quick]")
    changes = {key: value for key, value in document["quick"].items() if value is not None}
    for part in ("workloads", "arms"):
        for name in changes.get(part, {}):
            if name not in document.get(part, {}):
                error = FieldError(("quick", part, name), f"there is no {part.removesuffix('s')} {name!r}")
                raise _wrong(path, text, error)
    return changes


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise LabError(f"{path}: {error}") from error


def _parsed(path: Path, text: str) -> _Fields:
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise LabError(f"{path}: {printable(str(error))}") from error


def _located(path: Path, text: str, within: FieldKey, document: _Fields) -> Experiment:
    """The document as an experiment. `within`: the table of an error, where the document was changed."""
    try:
        return _experiment({"name": path.stem, **document}, path.parent)
    except FieldError as error:
        if error.key == ("name",) and "name" not in document:
            raise LabError(
                f"{path}: the experiment is called as its file, {path.stem!r}: {error.message}; rename the file, or "
                'write name = "..." in it'
            ) from error
        raise _wrong(path, text, _in_common(error, document).within(*within)) from error


def _in_common(error: FieldError, document: _Fields) -> FieldError:
    """The error at the key of ``[common]``, if the workload has its field from there."""
    key = error.key
    of_workload = key[:1] == ("workloads",) and len(key) > 2
    if not of_workload or has(document, key[:3]) or not has(document, ("common", key[2])):
        return error
    return error.at(("common", *key[2:]))


def _experiment(document: _Fields, folder: Path) -> Experiment:
    """The document as an experiment. `folder`: of its file; relative paths in the document start there."""
    tables = checked(FileTables.model_validate, document)
    _check_units(document, ())
    workloads = {}
    for name, fields in tables.workloads.items():
        whole = {**tables.common, **fields}
        if isinstance(named := whole.get("replay"), str):  # trials run in folders of their own
            whole["replay"] = str((folder / named).resolve())
        workloads[name] = _workload(whole, ("workloads", name))
    rest = {key: value for key, value in document.items() if key not in FileTables.model_fields}
    if isinstance(named := rest.get("strategies"), list):
        rest["strategies"] = [_anchored_strategy(one, folder) for one in named]
    if isinstance(arms := rest.get("arms"), dict):
        for name, arm in arms.items():
            _check_units(arm if isinstance(arm, dict) else {}, ("arms", name))
        rest["arms"] = {name: _anchored_arm(arm, folder) for name, arm in arms.items()}
    if isinstance(environments := rest.get("environments"), dict):
        rest["environments"] = {name: _anchored_environment(spec, folder) for name, spec in environments.items()}
    return checked(Experiment.model_validate, {**rest, "workloads": workloads})


def _check_units(fields: _Fields, key: FieldKey) -> None:
    """Raise FieldError for a time without a unit in the fields, whose table is at `key`."""
    for name in _TIMES:
        given = fields.get(name)
        for value in given if isinstance(given, list) else [given]:
            text = text_of(value)
            times = [part.partition(":")[0] for part in text.split(",")] if name == "stages" else [text]
            if bare := next(filter(None, map(time_without_unit, times)), None):
                raise FieldError((*key, name), f"{bare} has no unit; write {bare}ms or {bare}s")


def _anchored_arm(arm: Any, folder: Path) -> Any:
    if not isinstance(arm, dict) or "strategy" not in arm:
        return arm
    return arm | {"strategy": _anchored_strategy(arm["strategy"], folder)}


def _anchored_strategy(name: Any, folder: Path) -> Any:
    """Return the strategy with the paths of a user's files relative to the experiment's folder."""
    if not isinstance(name, str) or ".py:" not in name:
        return name
    plain, mark, settings = name.partition("?")
    parts = (str(folder / part) if file_of(part) else part for part in pair_of(plain, CLIENTS) if part)
    return "@".join(parts) + mark + settings


def _anchored_environment(spec: Any, folder: Path) -> Any:
    """The table with absolute paths: of a virtual environment, and of requirements that are folders or files."""
    if not isinstance(spec, dict):
        return spec
    named, requirements = spec.get("folder"), spec.get("requirements")
    changes: _Fields = {}
    if isinstance(named, str):
        changes["folder"] = str(folder.absolute() / Path(named).expanduser())
    if isinstance(requirements, list):
        changes["requirements"] = [_anchored_requirement(one, folder) for one in requirements]
    return spec | changes


def _anchored_requirement(requirement: Any, folder: Path) -> Any:
    """A path, as pip knows one: it begins with a dot, a slash or a tilde."""
    is_path = isinstance(requirement, str) and requirement.startswith((".", "/", "~"))
    return str((folder / Path(requirement).expanduser()).resolve()) if is_path else requirement


def _workload(fields: _Fields, key: FieldKey) -> WorkloadTable:
    """The table with every value of each axis checked."""
    _check_units(fields, key)
    link = {name: fields[name] for name in LINK_PARTS if name in fields}
    fields = {name: value for name, value in fields.items() if name not in link}
    axes = {name: list(map(unquoted, values)) for name, values in fields.items() if isinstance(values, list)}
    fields |= axes
    for name, values in axes.items():
        if name in _FIXED:
            raise FieldError((*key, name), f"{name} can't be an axis: write one value")
        if len(values) != len({repr(value) for value in values}) or not values:
            raise FieldError((*key, name), "an axis is a list of values, each once")
        for value in values:
            _checked({**_firsts(fields), name: value}, {}, key)
    table = _checked(_firsts(fields), axes, key)
    return checked(WorkloadTable.model_validate, {**dict(table), **link}, key) if link else table


def _checked(fields: _Fields, axes: _Fields, key: FieldKey) -> WorkloadTable:
    return checked(WorkloadTable.model_validate, {"first": fields, "axes": axes}, key, outside=1)


def _firsts(fields: _Fields) -> _Fields:
    return {name: value[0] if isinstance(value, list) and value else value for name, value in fields.items()}


def _wrong(path: Path, text: str, error: FieldError) -> LabError:
    line = line_of(text, error.key)
    where = f"line {line}: " if line else ""
    return LabError(f"{path}: {where}{error}")


def _merged(document: Mapping[str, Any], changes: Mapping[str, Any]) -> _Fields:
    """The document with the changes in place; tables are merged, all else is replaced."""
    merged = dict(document)
    for key, value in changes.items():
        merged[key] = _merged(merged.get(key, {}), value) if isinstance(value, dict) else value
    return merged


def _changed(
    document: Mapping[str, Any], changes: Mapping[str, Any], within: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """(key, what was written, what it is now) for every change."""
    for key, value in changes.items():
        if isinstance(value, dict):
            yield from _changed(document.get(key, {}), value, f"{within}{key}.")
        elif value != (was := document.get(key, "not written")):
            yield f"{within}{key}", was, value


def articles() -> dict[str, list[str]]:
    """Strategy without settings → the bundled experiments with a published source that have it in an arm.

    Control arms do not count: the lab added them.
    """
    found: dict[str, list[str]] = {}
    for name, path in bundled().items():
        plan = read_plan(path)
        if not plan.source:
            continue
        for strategy in {arm.strategy.partition("?")[0] for arm in plan.arms if not arm.control}:
            found.setdefault(strategy, []).append(name)
    return found
