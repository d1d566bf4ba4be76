"""Scales of the charts: from figures to places in per cent, and the ticks that people read them by."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

Words = Callable[[float], str]

_STEPS = (1.0, 2.0, 5.0)
MOST_TICKS, FEW_TICKS = 6, 4
"""Ticks of an axis that has the width or height of the page, and of one that shares it."""

NARROW, HALF = 240, 170
"""Pixels of a telephone's screen, and of a small picture, that an axis has at least."""

_LETTER = 7.0  # pixels
_EDGE = 4.0  # per cent from either end, within which a word does not stand in the middle of its place


@dataclass(frozen=True)
class Tick:
    """A place on an axis, in per cent of its length, and what is written there."""

    place: float
    text: str

    @property
    def edge(self) -> str:
        """Near which end it stands; its word must not go beyond."""
        return "first" if self.place < _EDGE else "last" if self.place > 100 - _EDGE else ""

    def span(self, pixels: float) -> tuple[float, float]:
        """From where to where its word goes, in per cent of an axis that is so long."""
        width = 100 * (len(self.text) + 1) * _LETTER / pixels
        start = self.place - {"first": 0.0, "": width / 2, "last": width}[self.edge]
        return start, start + width


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
        """Round figures, about as many as `most`."""
        values = _log_values(self.low, self.high, most) if self.log else _even_values(self.low, self.high, most)
        return [Tick(self.place(value), shortened(words(value))) for value in values]

    def ticks_across(self, words: Words, pixels: float = NARROW) -> list[Tick]:
        """As many round figures as have room beside each other on an axis of that length."""
        for most in range(MOST_TICKS, 0, -1):
            ticks = self.ticks(words, most)
            if ticks and not _touching(ticks, pixels):
                return ticks
        return self.ticks(words)[:1]


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


def _touching(ticks: list[Tick], pixels: float) -> bool:
    spans = [tick.span(pixels) for tick in ticks]
    return any(after[0] < before[1] for before, after in pairwise(spans))


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
