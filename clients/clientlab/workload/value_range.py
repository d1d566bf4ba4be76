"""ValueRange of a workload's numbers, declared at its fields and checked wherever a workload comes from.

Options of the command line, experiment files and run files hold workloads. Measured processes load them without
pydantic, so the bounds are plain metadata of the fields' types.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

from clientlab.errors import FieldError


@dataclass(frozen=True)
class ValueRange:
    """The least and the most that a number may be, both included. `meaning`: for the message to the user."""

    least: float
    most: float
    meaning: str

    def refusal(self, value: float) -> str | None:
        """What to write instead of a value out of bounds; None for all others."""
        if self.least <= value <= self.most:
            return None
        if isinstance(self.least, int):
            return f"{self.meaning}; write {self.least:,} to {self.most:,}"
        return f"write more than 0 {self.meaning}: {self.least:g} to {self.most:,.0f}"


def check_bounds(document: Any) -> None:
    """Raises FieldError for the first field of a dataclass whose number is out of its bounds."""
    for name, bounds in _bounds_of(type(document)):  # type: ignore[arg-type]  # mypy: classes are hashable
        value = getattr(document, name)
        if isinstance(value, int | float) and (refusal := bounds.refusal(value)):
            raise FieldError([name], refusal, value=f"{value:g}" if isinstance(value, float) else value)


@cache
def _bounds_of(cls: type[Any]) -> tuple[tuple[str, ValueRange], ...]:
    hints = get_type_hints(cls, include_extras=True)
    return tuple((name, bounds) for name, hint in hints.items() for bounds in _within(hint))


def _within(hint: Any) -> Iterator[ValueRange]:
    """The bounds in a type, which may be one of several, as in ``Annotated[int, ValueRange(…)] | None``."""
    yield from (one for one in getattr(hint, "__metadata__", ()) if isinstance(one, ValueRange))
    for part in get_args(hint):
        yield from _within(part)
