"""Scales of the charts: from figures to places in per cent, and the ticks that people read them by."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Words = Callable[[float], str]

_STEPS = (1.0, 2.0, 5.0)
MOST_TICKS, FEW_TICKS = 6, 4
"""Ticks of an axis that has the width of the page, and of one that shares it."""


@dataclass(frozen=True)
class Tick:
    """A place on an axis, in per cent of its length, and what is written there."""

    place: float
    text: str


@dataclass(frozen=True)
class Scale:
    """From `low` to `high`, by logarithms or evenly. A figure beyond an end is placed at that end."""

    low: float
    high: float
    log: bool = False

    def place(self, value: float) -> float:
        """Per cent of the axis' length."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return 100 * share

    def ticks(self, words: Words, most: int = MOST_TICKS) -> list[Tick]:
        """Round figures, about as many as `most`, so that they can be read on a narrow screen too."""
        values = _log_values(self.low, self.high, most) if self.log else _even_values(self.low, self.high, most)
        return [Tick(self.place(value), shortened(words(value))) for value in values]


def even(values: Iterable[float], room: float = 1.04) -> Scale:
    """From 0 to a little more than the largest of the figures."""
    largest = max(values, default=0.0)
    return Scale(0.0, largest * room if largest > 0 else 1.0)


def logarithmic(values: Iterable[float], room: float = 1.08) -> Scale | None:
    """From a little less than the least positive figure to a little more than the largest; None without any."""
    positive = [value for value in values if value > 0 and math.isfinite(value)]
    return Scale(min(positive) / room, max(positive) * room, log=True) if positive else None


def shortened(text: str) -> str:
    """A number without the noughts that say nothing on an axis: ``5.00 ms`` as ``5 ms``."""
    return re.sub(r"\.(?!\d)", "", re.sub(r"(\.\d*?)0+(?!\d)", r"\1", text))


def _even_values(low: float, high: float, most: int) -> list[float]:
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(size * power for size in (*_STEPS, 10.0) if size * power >= raw)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_values(low: float, high: float, most: int) -> list[float]:
    """Decades; where these are few, 1 2 5 in each; where even these are, round figures evenly."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in (_STEPS, (1.0, 3.0), (1.0,)):
        found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        found = [value for value in found if low <= value <= high]
        if len(found) <= most + 1:
            break
    if len(found) > most + 1:
        found = found[:: math.ceil(len(found) / most)]
    return found if len(found) > 1 else _even_values(low, high, most)
