"""Reading experiments from TOML files, in full or in their quick form, with the line of what is wrong."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clientlab.errors import LabError
from clientlab.runs.expansion import BadExperiment
from clientlab.runs.experiment import Experiment, Parts
from clientlab.runs.experiment_check import check_structure
from clientlab.runs.toml_lines import Key, line_of
from clientlab.workload import Workload

_FIXED = frozenset({"headers", "body", "seed", "timeout", "warmup"})
"""Fields of a workload that are no axis: they are to be equal for all arms, or their value is no single one."""

_Fields = dict[str, Any]


class _Checked(BaseModel):
    """A workload whose fields are checked: a dataclass takes on the strictness of what holds it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workload: Workload


class _Quick(BaseModel):
    """What the quick form puts in place of what is written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rounds: int | None = None
    common: _Fields = Field(default={})
    workloads: dict[str, _Fields] = Field(default={})
    arms: dict[str, _Fields] = Field(default={})


class _Written(Parts):
    """A file as it is written: `common` holds fields of every workload that has none of its own."""

    common: _Fields = Field(default={})
    workloads: dict[str, _Fields] = Field(default={})
    quick: _Quick | None = None


def bundled() -> dict[str, Path]:
    """Name → file of the experiments that come with the lab."""
    folder = Path(str(files("clientlab"))) / "experiments"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def has_quick(path: Path) -> bool:
    """Whether a file has a quick form."""
    return "quick" in _parsed(path, _text_of(path))


def read_experiment(path: Path, *, quick: bool = False) -> Experiment:
    """Read a TOML file. Raises LabError that names file, line and key."""
    text = _text_of(path)
    document = _parsed(path, text)
    experiment = _located(path, text, (), document)
    if not quick:
        return experiment
    if "quick" not in document:
        raise LabError(f"{path}: it has no quick form; write its values in [quick], or leave out --quick")
    changes = {key: value for key, value in document["quick"].items() if value is not None}
    for part in ("workloads", "arms"):
        for name in changes.get(part, {}):
            if name not in document.get(part, {}):
                raise _wrong(path, text, ("quick", part, name), f"there is no {part.removesuffix('s')} {name!r}")
    shortened = [f"{where}: {was} → {now}" for where, was, now in _changed(document, changes)]
    return _located(path, text, ("quick",), _merged(document, changes)).model_copy(update={"shortened": shortened})


def located(path: Path, error: BadExperiment) -> LabError:
    """The error with its file and line."""
    return _wrong(path, _text_of(path), error.key, str(error))


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
        raise LabError(f"{path}: {error}") from error


def _located(path: Path, text: str, within: Key, document: _Fields) -> Experiment:
    """The document as an experiment. `within`: the table that an error lies in, where the document is changed."""
    try:
        return _experiment({"name": path.stem, **document})
    except BadExperiment as error:
        raise _wrong(path, text, (*within, *error.key), str(error)) from error


def _experiment(document: _Fields) -> Experiment:
    written = _valid(_Written.model_validate, document, ())
    if not written.workloads:
        raise BadExperiment(("workloads",), "there is none; write [workloads.NAME]")
    workloads: dict[str, Workload] = {}
    axes: dict[str, dict[str, list[Any]]] = {}
    for name, fields in written.workloads.items():
        workloads[name], axes[name] = _workload({**written.common, **fields}, ("workloads", name))
    parts = {key: getattr(written, key) for key in Parts.model_fields}
    experiment = Experiment(**parts, workloads=workloads, axes={name: found for name, found in axes.items() if found})
    check_structure(experiment)
    return experiment


def _workload(fields: _Fields, key: Key) -> tuple[Workload, dict[str, list[Any]]]:
    """A workload of each axis' first value, and the axes."""
    axes = {name: values for name, values in fields.items() if isinstance(values, list)}
    for name, values in axes.items():
        if name in _FIXED:
            raise BadExperiment((*key, name), f"{name} can't be an axis: write one value")
        if len(values) != len({repr(value) for value in values}) or not values:
            raise BadExperiment((*key, name), "an axis is a list of values, each once")
        for value in values:
            _checked({**_firsts(fields), name: value}, key)
    return _checked(_firsts(fields), key), axes


def _checked(fields: _Fields, key: Key) -> Workload:
    checked: _Checked = _valid(_Checked.model_validate, {"workload": fields}, key, outside=1)
    return checked.workload


def _firsts(fields: _Fields) -> _Fields:
    return {name: value[0] if isinstance(value, list) and value else value for name, value in fields.items()}


def _valid(validate: Any, document: _Fields, key: Key, outside: int = 0) -> Any:
    """What `validate` makes of the document. Raises BadExperiment for its first error.

    `outside`: how many parts of the error's place are not in the file.
    """
    try:
        return validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        message = first["msg"].removeprefix("Value error, ")
        if isinstance(first["input"], list) and "list" not in first["type"] and "short" not in first["type"]:
            message += "; axes are a workload's fields, an arm's concurrency and its settings"
        raise BadExperiment((*key, *first["loc"][outside:]), message) from error


def _wrong(path: Path, text: str, key: Key, message: str) -> LabError:
    line = line_of(text, key)
    where = f"line {line}: " if line else ""
    name = ".".join(map(str, key))
    return LabError(f"{path}: {where}{name}: {message}" if name else f"{path}: {message}")


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
