"""Why a document is no experiment: one line with the key, the value and what to write, from pydantic's errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from pydantic import ValidationError

from clientlab.errors import FieldError, FieldKey
from clientlab.experiments.experiment import (
    ArmTable,
    ClaimTable,
    Experiment,
    FileTables,
    QuickTable,
)
from clientlab.nearest import nearest
from clientlab.results.part import shortened
from clientlab.results.plan import EnvironmentSpec, Source
from clientlab.workload.link import LINK_PARTS
from clientlab.workload.workload import Workload

_Valid = TypeVar("_Valid")
_LONGEST_VALUE = 60
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


class UnknownKey(FieldError):
    """A key that its table does not have: the message names the key, and stands behind the name of the table."""

    def render(self, names: Mapping[str, str]) -> str:  # noqa: ARG002 - files have these errors, options have not
        table = ".".join(map(str, self.key[:-1]))
        return f"{table}: {self.message}" if table else self.message


def checked(validate: Callable[[Any], _Valid], document: Any, key: FieldKey = (), outside: int = 0) -> _Valid:
    """What `validate` makes of the document. Raises FieldError for its first error.

    `key`: where the document stands in its file. `outside`: how many parts of an error's place are not in the file.
    """
    try:
        return validate(document)
    except ValidationError as error:
        raise _refusal(error, document, key, outside) from error


def _refusal(error: ValidationError, document: Any, key: FieldKey, outside: int) -> FieldError:
    """The first error. An unknown key comes before others: it may be the missing one, misspelt.

    Of the members of a union, the one counts that fits most of the value.
    """
    errors = sorted(error.errors(), key=lambda one: one["type"] not in _UNKNOWN)
    found = [(_within(document, one["loc"], whole=one["type"] == "missing"), one) for one in errors]
    first = found[0][0]
    place, problem = max((one for one in found if one[0][: len(first)] == first), key=lambda one: len(one[0]))
    kind, whole = problem["type"], (*key, *place[outside:])
    if kind in _UNKNOWN:
        return UnknownKey(whole, f"unknown key `{whole[-1]}`{_known(str(whole[-1]), whole[:-1])}")
    if kind == "missing":
        return FieldError(whole, "it is missing; write it")
    if kind == "value_error":
        return FieldError(whole, problem["msg"].removeprefix("Value error, "))
    return FieldError(whole, problem["msg"], value=_shown(problem["input"]))


def _within(document: Any, location: FieldKey, *, whole: bool) -> FieldKey:
    """The parts of a location that are keys of the document; the others name members of unions.

    `whole`: the last part is one as well, which the document lacks.
    """
    place: list[str | int] = []
    for index, part in enumerate(location):
        keys = range(len(document)) if isinstance(document, list | tuple) else document
        if isinstance(keys, dict | range) and part in keys:
            document = document[part]
            place.append(part)
        elif whole and index == len(location) - 1:
            place.append(part)
    return tuple(place)


def _shown(value: Any) -> str:
    text = shortened(repr(value).lower() if isinstance(value, bool) else repr(value))
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def _known(name: str, table: FieldKey) -> str:
    """What the user may have meant by an unknown key of a table."""
    if table and name in _KEYS["", 0]:
        return "; it is one of the experiment: write it above the first [table]"
    own = _KEYS.get((str(table[0]) if table else "", len(table)), ())
    return nearest(name, dict.fromkeys([*own, *_KEYS["", 0]]))


_KEYS = {
    ("", 0): list(Experiment.model_fields | FileTables.model_fields),
    ("workloads", 2): [*(one.name for one in fields(Workload)), *LINK_PARTS],
    ("arms", 2): list(ArmTable.model_fields),
    ("claims", 2): list(ClaimTable.model_fields),
    ("environments", 2): list(EnvironmentSpec.model_fields),
    ("source", 1): list(Source.model_fields),
    ("quick", 1): list(QuickTable.model_fields),
}
"""Name of a table, and of how many parts its key consists → its keys."""
