"""Sentences that state a direction: each is bound to an interval, and is refused where that does not bear it out.

A run that is measured again may not show any more what a sentence says. `scripts/findings` then writes no page, and
names the sentence to soften.
"""

from __future__ import annotations

from typing import Literal

from clientlab import units
from clientlab.errors import LabError

Statement = Literal["more", "less", "no difference"]

_NEUTRAL = 1.0


class UnsureSentence(LabError):
    """A sentence of the page whose interval does not exclude its contrary."""


def borne_out(where: str, value: float | None, interval: tuple[float, float] | None, statement: Statement) -> str:
    """The ratio with its interval, as the page shows it. `where`: experiment and claim, or arms, of the sentence.

    Raises UnsureSentence where there is no interval, or where it does not exclude the contrary of the statement. That
    two sides cannot be told apart is a statement, too: its contrary is an interval without 1.
    """
    shown = units.ratio(value, interval)
    if interval is None:
        raise UnsureSentence(f"{where}: its sentence states {statement!r}, and {shown} has no interval; soften it")
    low, high = interval
    holds = {"more": low > _NEUTRAL, "less": high < _NEUTRAL, "no difference": low <= _NEUTRAL <= high}
    if not holds[statement]:
        contrary = "excludes 1" if statement == "no difference" else f"does not exclude {_contrary(statement)}"
        raise UnsureSentence(f"{where}: its sentence states {statement!r}, and {shown} {contrary}; change the sentence")
    return shown


def _contrary(statement: Statement) -> str:
    return "1 or less" if statement == "more" else "1 or more"
