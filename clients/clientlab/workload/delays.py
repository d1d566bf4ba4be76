"""Delays that requests ask of the upstream: request k of a round waits equally long in every strategy.

The grammar is that of the upstreams; a test compares both:

    TIME                 constant: seconds (``0.12``, ``1e-3``, ``2s``), ``120ms``, ``5us`` or minutes (``1m``)
    uniform:TIME,TIME    from the lowest to the highest
    normal:TIME,TIME     mean and standard deviation, truncated at 0
    lognormal:TIME,0.3   median, and sigma of the logarithm
    exponential:TIME     mean
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from clientlab.workload.written import Written

if TYPE_CHECKING:
    from statistics import NormalDist

_DIGITS = r"(?:\d{1,12}(?:\.\d{0,18})?|\.\d{1,18})(?:e(?:\d|-\d{1,2}))?"  # more would overflow a float
_NUMBER = re.compile(_DIGITS, re.ASCII)
_TIME = re.compile(rf"({_DIGITS})(us|ms|s|m|)", re.ASCII)
_PARTS_OF_A_SECOND = {"us": 1_000_000, "ms": 1000, "s": 1, "": 1}  # to divide by: 9 * 1e-3 is not 0.009


_MASK = (1 << 64) - 1
_STEEPEST = 10
_MOST_SECONDS = 1e9  # thirty years

FORMS = "120ms, 0.12, uniform:50ms,150ms, normal:100ms,10ms, lognormal:100ms,0.3 or exponential:100ms"

Quantile = Callable[[float], float]
"""The map from a share in (0, 1) to seconds."""


def seconds(text: str) -> float:
    """Parse ``120ms``, ``2s``, ``5us``, ``1m`` or a number of seconds to seconds. Raises ValueError."""
    found = _TIME.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is not a length of time; write 120ms, 2s or 0.12")
    number, unit = float(found[1]), found[2]
    return number * 60 if unit == "m" else number / _PARTS_OF_A_SECOND[unit]


def time_without_unit(text: str) -> str | None:
    """Return the first time in a delay, or a plain time, that has no unit; None if each has one."""
    form, _, values = text.rpartition(":")
    times = values.split(",")[: 1 if form.strip() == "lognormal" else None]
    return next((time.strip() for time in times if _NUMBER.fullmatch(time.strip())), None)


@dataclass(frozen=True)
class Delay(Written):
    """One distribution of delays. `form`: its name; empty for a constant. `values`: its parameters (times: seconds)."""

    form: str
    values: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> Delay:
        """Return the delay of a text. Raises ValueError with the forms there are."""
        name, colon, rest = text.partition(":")
        if not colon:
            return cls("", (_delay_time(text),))
        parts, (readers, quantile_of) = rest.split(","), _FORMS.get(name, ((), None))
        if not quantile_of or len(parts) != len(readers):
            raise ValueError(f"{text!r} is not a delay; write {FORMS}")
        values = tuple(read(part) for read, part in zip(readers, parts, strict=True))
        quantile_of(*values)  # raises ValueError for values that do not fit each other
        return cls(name, values)

    def __str__(self) -> str:
        """Return the delay as `parse` reads it, without a lost digit."""
        if not self.form:
            return _time_text(self.values[0])
        read = zip(_FORMS[self.form][0], self.values, strict=True)
        texts = (_time_text(value) if reader is _delay_time else repr(value) for reader, value in read)
        return f"{self.form}:{','.join(texts)}"

    @property
    def constant(self) -> float | None:
        """Seconds that each request waits, or None if a distribution decides."""
        return None if self.form else self.values[0]

    @property
    def quantile(self) -> Quantile:
        """The map from a share in (0, 1) to seconds."""
        return _FORMS[self.form][1](*self.values) if self.form else lambda _: self.values[0]

    def at(self, seed: int) -> Callable[[int], float]:
        """Return a function from the number of a request to the seconds that it waits: only these two decide."""
        if not self.form:
            return lambda _: self.values[0]
        quantile = self.quantile
        return lambda number: quantile(share(seed, number))


def _delay_time(text: str) -> float:
    found = seconds(text)
    if found > _MOST_SECONDS:
        raise ValueError(f"{text!r} is longer than a delay can be; write at most {_MOST_SECONDS:.0f} s")
    return found


def _sigma(text: str) -> float:
    if not _NUMBER.fullmatch(text.strip()) or float(text) > _STEEPEST:
        raise ValueError(f"{text!r}: sigma is a number from 0 to {_STEEPEST}, as 0.3")
    return float(text)


def _time_text(value: float) -> str:
    """Return the time as `seconds` reads it, in the largest unit that it is not less than."""
    if not value:
        return "0ms"
    unit, parts = ("s", 1) if value >= 1 else ("ms", 1000) if value * 1000 >= 1 else ("us", 1_000_000)
    text = f"{value * parts:.12g}{unit}"
    return text if seconds(text) == value else repr(value)


def _uniform(first: float, last: float) -> Quantile:
    if first > last:
        raise ValueError("uniform: it ends before it starts; write the shorter delay first")
    return lambda share: first + (last - first) * share


@cache
def _standard() -> NormalDist:
    from statistics import NormalDist  # noqa: PLC0415 - it imports much, and few trials need it

    return NormalDist()


def _normal(mean: float, deviation: float) -> Quantile:
    if deviation == 0:
        return lambda _: mean
    below = _standard().cdf(-mean / deviation)  # the part of the curve left of zero, cut off
    return lambda share: max(0.0, mean + deviation * _standard().inv_cdf(below + (1 - below) * share))


def _lognormal(median: float, sigma: float) -> Quantile:
    if median <= 0:
        raise ValueError("lognormal: the median must be above 0")
    return lambda share: median * math.exp(sigma * _standard().inv_cdf(share))


def _exponential(mean: float) -> Quantile:
    if mean <= 0:
        raise ValueError("exponential: the mean must be above 0")
    return lambda share: -mean * math.log1p(-share)


_FORMS: dict[str, tuple[tuple[Callable[[str], float], ...], Callable[..., Quantile]]] = {
    "uniform": ((_delay_time, _delay_time), _uniform),
    "normal": ((_delay_time, _delay_time), _normal),
    "lognormal": ((_delay_time, _sigma), _lognormal),
    "exponential": ((_delay_time,), _exponential),
}
"""Name of a distribution → how its parameters are parsed, and its quantiles."""


def share(seed: int, number: int, stream: int = 0) -> float:
    """Return a number in (0, 1) from its arguments alone: splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    state = (seed * 0x9E3779B97F4A7C15 + (number + 1) * 0xBF58476D1CE4E5B9 + stream * 0x94D049BB133111EB) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return (((state ^ (state >> 31)) >> 12) + 0.5) / (1 << 52)  # a bit fewer than a float has: 1 is never reached
