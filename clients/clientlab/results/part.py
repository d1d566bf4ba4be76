"""What all parts of the run document have in common: printable texts, and errors of one line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, model_validator

from clientlab.printable import printable

_LONGEST_PART = 300
"""Characters of a part of a message."""

_ARE_PRINTABLE = object()
"""The context of a validation whose texts were made printable before."""


def _printable(value: Any) -> Any:
    """The texts of a value, and of mappings and lists in it, made printable."""
    if isinstance(value, str):
        return value if value.isprintable() else printable(value)
    if isinstance(value, list):
        return [_printable(inner) for inner in value]
    if isinstance(value, dict):
        return {_printable(key): _printable(inner) for key, inner in value.items()}
    return value


_ASCII = bytes(range(0x20, 0x7F)) + b"\t\n\r"
_ESCAPED = re.compile(rb"\\[bfr]")
_CODE = re.compile(rb"\\u([0-9a-fA-F]{4})")


def is_printable(content: bytes) -> bool:
    """Whether the JSON of a document has printable texts only, which takes a tenth of the time of a walk.

    `content` is whole JSON, in UTF-8. False also for some documents with printable texts.
    """
    if _ESCAPED.search(content) or not content.translate(None, _ASCII).decode().isprintable():
        return False
    return all(chr(int(code, 16)).isprintable() for code in set(_CODE.findall(content)))


class DocumentPart(BaseModel):
    """A part of the run document: immutable, with printable texts only. Keys of other versions are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", ser_json_inf_nan="constants")

    @model_validator(mode="before")
    @classmethod
    def _with_printable_texts(cls, fields: Any, info: ValidationInfo) -> Any:
        """Texts come from measured servers, plug-ins and files. Parts inside this one have this validator, too."""
        return fields if info.context is _ARE_PRINTABLE or not isinstance(fields, dict) else _printable(fields)

    @classmethod
    def of_document(cls, document: Any, *, walked: bool = False) -> Self:
        """The part that a JSON document describes. Its texts are walked once, and not again for each part inside.

        `walked`: they are known to be printable. Raises ValidationError.
        """
        return cls.model_validate(document if walked else _printable(document), context=_ARE_PRINTABLE)


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
