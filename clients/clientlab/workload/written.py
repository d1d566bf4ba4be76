"""Values that options, files and documents hold as texts, which are parsed where they are read.

Measured processes load these classes without pydantic. Its hooks call no function of pydantic's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self


class Written(ABC):
    """A value whose text `parse` reads and `str` writes."""

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self:
        """The value of a text. Raises ValueError."""

    @classmethod
    def _read(cls, given: object) -> Self:
        if isinstance(given, cls):
            return given
        return cls.parse(text_of(given))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> dict[str, Any]:
        read = {"type": "no-info", "function": cls._read}
        return {"type": "function-plain", "function": read, "serialization": {"type": "to-string"}}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        return {"type": "string"}


@dataclass(frozen=True)
class ParsedBy:
    """Of a field's type: a number that may be written as a text, which `parse` reads, as options do."""

    parse: Callable[[str], float]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        read = {"type": "no-info", "function": self._read}
        return {"type": "function-before", "function": read, "schema": handler(source)}

    def _read(self, given: object) -> object:
        return self.parse(text_of(given)) if isinstance(given, str | bool) else given


def text_of(given: object) -> str:
    """A value of a file as the command line has it: the number ``0.12`` is the text ``"0.12"``, and true is "true"."""
    return str(given).lower() if isinstance(given, bool) else str(given)
