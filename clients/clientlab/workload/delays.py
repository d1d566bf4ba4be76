"""Delays that requests ask of the upstream: request k waits equally long in every strategy and round.

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
from statistics import NormalDist

_DIGITS = r"(?:\d{1,12}(?:\.\d{0,18})?|\.\d{1,18})(?:e(?:\d|-\d{1,2}))?"  # more would overflow a float
_NUMBER = re.compile(_DIGITS, re.ASCII)
_TIME = re.compile(rf"({_DIGITS})(us|ms|s|m|)", re.ASCII)
_PARTS_OF_A_SECOND = {"us": 1_000_000, "ms": 1000, "s": 1, "": 1}  # to divide by: 9 * 1e-3 is not 0.009
_STANDARD = NormalDist()
_MASK = (1 << 64) - 1
_STEEPEST = 10

FORMS = "120ms, 0.12, uniform:50ms,150ms, normal:100ms,10ms, lognormal:100ms,0.3 or exponential:100ms"


def seconds(text: str) -> float:
    """Parse ``120ms``, ``2s``, ``5us``, ``1m`` or a number of seconds to seconds. Raises ValueError."""
    found = _TIME.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is not a length of time; write 120ms, 2s or 0.12")
    number, unit = float(found[1]), found[2]
    return number * 60 if unit == "m" else number / _PARTS_OF_A_SECOND[unit]


@dataclass(frozen=True)
class DelayDistribution:
    """One distribution of delays, as the map from a share in (0, 1) to seconds (its quantiles)."""

    text: str
    constant: float | None
    quantile: Callable[[float], float]

    def of(self, seed: int, number: int) -> float:
        """Seconds that request `number` waits under `seed`: nothing but these two decides."""
        return self.quantile(share(seed, number)) if self.constant is None else self.constant


def parse(text: str) -> DelayDistribution:
    """Read a delay. Raises ValueError with the forms there are."""
    name, colon, rest = text.partition(":")
    if not colon:
        fixed = seconds(text)
        return DelayDistribution(text, fixed, lambda _: fixed)
    parts = rest.split(",")
    form = _FORMS.get(name)
    if form is None or len(parts) != form[0]:
        raise ValueError(f"{text!r} is not a delay; write {FORMS}")
    return DelayDistribution(text, None, form[1](*parts))


def _uniform(low: str, high: str) -> Callable[[float], float]:
    first, last = seconds(low), seconds(high)
    if first > last:
        raise ValueError(f"uniform:{low},{high} ends before it starts; write the shorter delay first")
    return lambda share: first + (last - first) * share


def _normal(mean: str, deviation: str) -> Callable[[float], float]:
    mu, sd = seconds(mean), seconds(deviation)
    if sd == 0:
        return lambda _: mu
    below = _STANDARD.cdf(-mu / sd)  # the part of the curve left of zero, cut off
    return lambda share: max(0.0, mu + sd * _STANDARD.inv_cdf(below + (1 - below) * share))


def _lognormal(median: str, sigma: str) -> Callable[[float], float]:
    middle = _above_zero(median, f"lognormal:{median},{sigma}: the median")
    if not _NUMBER.fullmatch(sigma.strip()) or float(sigma) > _STEEPEST:
        raise ValueError(f"lognormal:{median},{sigma}: sigma is a number from 0 to {_STEEPEST}, as 0.3")
    spread = float(sigma)
    return lambda share: middle * math.exp(spread * _STANDARD.inv_cdf(share))


def _exponential(mean: str) -> Callable[[float], float]:
    scale = _above_zero(mean, f"exponential:{mean}: the mean")
    return lambda share: -scale * math.log1p(-share)


def _above_zero(text: str, name: str) -> float:
    value = seconds(text)
    if value <= 0:
        raise ValueError(f"{name} must be above 0")
    return value


_FORMS: dict[str, tuple[int, Callable[..., Callable[[float], float]]]] = {
    "uniform": (2, _uniform),
    "normal": (2, _normal),
    "lognormal": (2, _lognormal),
    "exponential": (1, _exponential),
}


def share(seed: int, number: int, stream: int = 0) -> float:
    """A number in (0, 1) from its arguments alone: splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    state = (seed * 0x9E3779B97F4A7C15 + (number + 1) * 0xBF58476D1CE4E5B9 + stream * 0x94D049BB133111EB) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return (((state ^ (state >> 31)) >> 12) + 0.5) / (1 << 52)  # a bit fewer than a float has: 1 is never reached
