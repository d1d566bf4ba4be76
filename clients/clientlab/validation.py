"""The base models of documents, and a failed validation as one line."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from clientlab.errors import FieldError, FieldKey
from clientlab.text import suggest_nearest

_Valid = TypeVar("_Valid")

# Pydantic's errors for an unknown key.
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_LONGEST = 60  # characters of a key or value in a message


class DocumentPart(BaseModel):
    """A part of a document: immutable. Keys of other versions are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="constants")

    def updated(self, **fields: Any) -> Self:
        """Return a copy with other values of these fields, which are not validated."""
        return self.model_copy(update=fields)


class MeasuredPart(DocumentPart):
    """A part whose numbers are finite."""

    model_config = ConfigDict(allow_inf_nan=False)

    def updated(self, **fields: Any) -> Self:
        """Return a copy with other values of these fields. Raise ValidationError."""
        return type(self).model_validate({**dict(self), **fields})


def validate(
    validator: Callable[[Any], _Valid], document: Any, known: Collection[str] = ()
) -> _Valid:
    """Return what `validator` makes of a document.

    Raise FieldError for its first problem.
    """
    try:
        return validator(document)
    except ValidationError as error:
        raise first_problem(error, document, known) from error


def first_problem(
    error: ValidationError, document: Any = None, known: Collection[str] = ()
) -> FieldError:
    """Return a failed validation as an error of one field.

    For example ``workloads.main.requests: Input should be a valid integer, got
    'many'``. Unknown keys are reported before missing ones, because they may be
    misspelt. `document`: what was validated; the key then leaves out the members of
    unions. `known`: all keys, for a hint.
    """
    problems = error.errors(include_url=False)
    first = min(problems, key=lambda problem: problem["type"] not in _UNKNOWN)
    kind = first["type"]
    key: list[str | int] = []
    for part in first["loc"]:
        if document is None or kind == "missing":
            key.append(part)
        elif isinstance(part, int) or (isinstance(document, dict) and part in document):
            key.append(part)
            document = document[part]
    key = [shorten(part) if isinstance(part, str) else part for part in key]
    if kind in _UNKNOWN:
        return unknown_key(key, known)
    if kind in {"missing", "value_error"}:
        message = first["msg"].removeprefix("Value error, ")
    else:
        message = f"{first['msg']}, got {shorten(repr(first['input']))}"
    return FieldError(key, message)


def unknown_key(key: FieldKey, known: Collection[str]) -> FieldError:
    """Return the error of a key that its table does not have.

    `known`: all keys of the document, for a hint.
    """
    hint = "; it belongs to another table"
    if key[-1] not in known:
        hint = suggest_nearest(str(key[-1]), known)
    return FieldError(key, f"unknown key{hint}")


def shorten(text: str) -> str:
    """Return the beginning of a text on one line.

    A document can contain names of megabytes with line feeds.
    """
    return " ".join(text.split())[:_LONGEST]
