"""What all parts of the run document have in common: printable texts, and errors of one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from clientlab.printable import printable

_LONGEST_PART = 300
"""Characters of a part of a message."""


def _printable(value: Any) -> Any:
    """Return the value with printable texts, also in mappings and lists."""
    if isinstance(value, str):
        return value if value.isprintable() else printable(value)
    if isinstance(value, list):
        return [_printable(inner) for inner in value]
    if isinstance(value, dict):
        return {_printable(key): _printable(inner) for key, inner in value.items()}
    return value


class DocumentPart(BaseModel):
    """A part of the run document: immutable, with printable texts only. Keys of other versions are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="constants")

    @model_validator(mode="before")
    @classmethod
    def _with_printable_texts(cls, fields: Any) -> Any:
        """Texts come from measured servers, plug-ins and files."""
        return _printable(fields) if isinstance(fields, dict) else fields


class MeasuredPart(DocumentPart):
    """A part whose numbers are finite."""

    model_config = ConfigDict(allow_inf_nan=False)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with changes, validated. Pydantic's own copies take any value. Raises ValidationError."""
        copy = super().model_copy(deep=deep)
        return type(self).model_validate({**dict(copy), **update}) if update else copy


def first_problem(error: ValidationError) -> str:
    """The first failed check in one line: ``connections_opened: Input should be greater than or equal to 0``."""
    first = error.errors(include_url=False, include_input=False)[0]
    place, what = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    return ": ".join(shortened(part) for part in (place, what) if part)


def shortened(text: object) -> str:
    """A text of a message in one line: a document can hold names of megabytes, with line feeds in them."""
    return " ".join(printable(str(text)).split())[:_LONGEST_PART]
