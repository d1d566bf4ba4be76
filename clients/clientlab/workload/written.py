"""How fields of a workload are written and bounded: texts that are parsed where they are read, and ranges of numbers.

Options, experiment files and run files hold workloads. Measured processes load these classes without pydantic, so the
hooks below call no function of pydantic's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Self, get_args, get_type_hints

from clientlab.errors import FieldError


class Written(ABC):
    """A value whose text `parse` reads and `str` writes."""

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self:
        """Return the value of a text. Raises ValueError."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> dict[str, Any]:
        def read(given: object) -> Written:
            return given if isinstance(given, cls) else cls.parse(text_of(given))

        validator = {"type": "no-info", "function": read}
        return {"type": "function-plain", "function": validator, "serialization": {"type": "to-string"}}


@dataclass(frozen=True)
class ParsedBy:
    """Mark a number that may be written as a text, which `parse` reads, as options do."""

    parse: Callable[[str], float]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        def read(given: object) -> object:
            return self.parse(text_of(given)) if isinstance(given, str | bool) else given

        return {"type": "function-before", "function": {"type": "no-info", "function": read}, "schema": handler(source)}


@dataclass(frozen=True)
class Exactly:
    """Mark a number or a boolean that no value of another type may stand for, such as ``"20"``."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        return {**handler(source), "strict": True}


@dataclass(frozen=True)
class ValueRange:
    """The least and the most that a number may be, both included. `meaning`: for the message to the user."""

    least: float
    most: float
    meaning: str


def check_bounds(document: Any) -> None:
    """Raise FieldError for the first field of a dataclass whose number is out of its range."""
    for name, bounds in _bounds_of(type(document)):  # type: ignore[arg-type]  # mypy: classes are hashable
        value = getattr(document, name)
        if isinstance(value, int | float) and not bounds.least <= value <= bounds.most:
            shown = f"{value:g}" if isinstance(value, float) else value
            least, most = (
                f"{limit:,}" if isinstance(limit, int) else f"{limit:g}" for limit in (bounds.least, bounds.most)
            )
            raise FieldError([name], f"{bounds.meaning}; write {least} to {most}", value=shown)


@cache
def _bounds_of(cls: type[Any]) -> list[tuple[str, ValueRange]]:
    found = []
    for name, hint in get_type_hints(cls, include_extras=True).items():
        for part in (hint, *get_args(hint)):  # of several types, as in ``Annotated[int, ValueRange(…)] | None``
            found += [(name, one) for one in getattr(part, "__metadata__", ()) if isinstance(one, ValueRange)]
    return found


def text_of(given: object) -> str:
    """Return a value of a file as the command line has it: the number ``0.12`` is the text ``"0.12"``."""
    return str(given).lower() if isinstance(given, bool) else str(given)
