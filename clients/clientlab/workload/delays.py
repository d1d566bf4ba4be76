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


@cache
def _standard() -> NormalDist:
    """The standard normal distribution. Its module imports much, and each trial's process would."""
    from statistics import NormalDist  # noqa: PLC0415 - few workloads need it

    return NormalDist()


_MASK = (1 << 64) - 1
_STEEPEST = 10
_MOST_SECONDS = 1e9  # thirty years

FORMS = "120ms, 0.12, uniform:50ms,150ms, normal:100ms,10ms, lognormal:100ms,0.3 or exponential:100ms"


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
        """Read a delay. Raises ValueError with the forms there are."""
        name, colon, rest = text.partition(":")
        if not colon:
            return cls("", (_delay_time(text),))
        parts, form = rest.split(","), _FORMS.get(name)
        if not name or form is None or len(parts) != len(form.parse):
            raise ValueError(f"{text!r} is not a delay; write {FORMS}")
        values = tuple(parse(part) for parse, part in zip(form.parse, parts, strict=True))
        if not form.holds(*values):
            raise ValueError(f"{text}: {form.wrong}")
        return cls(name, values)

    def __str__(self) -> str:
        """The delay as `parse` reads it: times in the largest unit that they are not less than."""
        if not self.form:
            return _time_text(self.values[0])
        parsed = zip(_FORMS[self.form].parse, self.values, strict=True)
        texts = (_time_text(value) if parse is _delay_time else repr(value) for parse, value in parsed)
        return f"{self.form}:{','.join(texts)}"

    @property
    def constant(self) -> float | None:
        """Seconds that each request waits; None where a distribution decides."""
        return None if self.form else self.values[0]

    @property
    def quantile(self) -> Callable[[float], float]:
        """The map from a share in (0, 1) to seconds."""
        return _FORMS[self.form].quantile(*self.values)

    def of(self, seed: int, number: int) -> float:
        """Seconds that request `number` waits under `seed`: nothing but these two decides."""
        return self.at(seed)(number)

    def at(self, seed: int) -> Callable[[int], float]:
        """A function from the number of a request to the seconds that it waits under `seed`."""
        if not self.form:
            return lambda _: self.values[0]
        quantile = self.quantile
        return lambda number: quantile(share(seed, number))


@dataclass(frozen=True)
class _Form:
    """A kind of distribution: how its parameters are parsed, when they fit each other, and its quantiles."""

    parse: tuple[Callable[[str], float], ...]
    quantile: Callable[..., Callable[[float], float]]
    holds: Callable[..., bool] = lambda *_: True
    wrong: str = ""


def _sigma(text: str) -> float:
    if not _NUMBER.fullmatch(text.strip()) or float(text) > _STEEPEST:
        raise ValueError(f"{text!r}: sigma is a number from 0 to {_STEEPEST}, as 0.3")
    return float(text)


def _time_text(value: float) -> str:
    """The time as `seconds` reads it, without a loss: in the largest unit that it is not less than."""
    if not value:
        return "0ms"
    unit, parts = next(((unit, parts) for unit, parts in (("s", 1), ("ms", 1000)) if value * parts >= 1), ("us", 10**6))
    text = f"{value * parts:.12g}{unit}"
    return text if seconds(text) == value else repr(value)


def _delay_time(text: str) -> float:
    """Parse a time of a delay. Raises ValueError, also for one beyond the limit."""
    found = seconds(text)
    if found > _MOST_SECONDS:
        raise ValueError(f"{text!r} is longer than a delay can be; write at most {_MOST_SECONDS:.0f} s")
    return found


def _normal(mean: float, deviation: float) -> Callable[[float], float]:
    if deviation == 0:
        return lambda _: mean
    below = _standard().cdf(-mean / deviation)  # the part of the curve left of zero, cut off
    return lambda share: max(0.0, mean + deviation * _standard().inv_cdf(below + (1 - below) * share))


_FORMS = {
    "": _Form((_delay_time,), lambda fixed: lambda _: fixed),
    "uniform": _Form(
        (_delay_time, _delay_time),
        lambda first, last: lambda share: first + (last - first) * share,
        lambda first, last: first <= last,
        "it ends before it starts; write the shorter delay first",
    ),
    "normal": _Form((_delay_time, _delay_time), _normal),
    "lognormal": _Form(
        (_delay_time, _sigma),
        lambda median, sigma: lambda share: median * math.exp(sigma * _standard().inv_cdf(share)),
        lambda median, _: median > 0,
        "the median must be above 0",
    ),
    "exponential": _Form(
        (_delay_time,),
        lambda mean: lambda share: -mean * math.log1p(-share),
        lambda mean: mean > 0,
        "the mean must be above 0",
    ),
}


def share(seed: int, number: int, stream: int = 0) -> float:
    """A number in (0, 1) from its arguments alone: splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    state = (seed * 0x9E3779B97F4A7C15 + (number + 1) * 0xBF58476D1CE4E5B9 + stream * 0x94D049BB133111EB) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return (((state ^ (state >> 31)) >> 12) + 0.5) / (1 << 52)  # a bit fewer than a float has: 1 is never reached
