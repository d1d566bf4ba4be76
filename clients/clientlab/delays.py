"""Delays that the upstream is asked for: request k waits equally long in every strategy and round.

Grammar, the same as the upstreams': ``120ms`` · ``0.12`` · ``2s`` · ``uniform:50ms,150ms`` ·
``normal:100ms,10ms`` (mean, sd; truncated at 0) · ``lognormal:100ms,0.3`` (median, sigma of the
logarithm) · ``exponential:100ms`` (mean).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

_DIGITS = r"\d{1,12}(?:\.\d{0,18})?|\.\d{1,18}"  # more would overflow a float
_NUMBER = re.compile(_DIGITS, re.ASCII)
_TIME = re.compile(rf"({_DIGITS})(us|ms|s|m|)", re.ASCII)
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "": 1.0}
_STANDARD = NormalDist()
_MASK = (1 << 64) - 1
_STEEPEST = 10  # of the upstreams' sigma too

FORMS = "120ms, 0.12, uniform:50ms,150ms, normal:100ms,10ms, lognormal:100ms,0.3 or exponential:100ms"


def seconds(text: str) -> float:
    """Seconds of ``120ms``, ``2s``, ``1m`` or a bare number of seconds. Raises ValueError."""
    found = _TIME.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is not a length of time; write 120ms, 2s or 0.12")
    return float(found[1]) * _UNITS[found[2]]


@dataclass(frozen=True)
class Delay:
    """One distribution of delays, as the map from a share in (0, 1) to seconds (its quantiles)."""

    text: str
    constant: float | None
    quantile: Callable[[float], float]

    def of(self, seed: int, number: int) -> float:
        """Seconds that request `number` waits under `seed`: nothing but these two decides."""
        return self.quantile(_share(seed, number)) if self.constant is None else self.constant


def parse(text: str) -> Delay:
    """Read a delay. Raises ValueError with the forms there are."""
    name, colon, rest = text.partition(":")
    if not colon:
        fixed = seconds(text)
        return Delay(text, fixed, lambda _: fixed)
    parts = rest.split(",")
    form = _FORMS.get(name)
    if form is None or len(parts) != form[0]:
        raise ValueError(f"{text!r} is not a delay; write {FORMS}")
    return Delay(text, None, form[1](*parts))


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
    middle = seconds(median)
    if not _NUMBER.fullmatch(sigma) or float(sigma) > _STEEPEST:
        raise ValueError(f"lognormal:{median},{sigma}: sigma is a number from 0 to {_STEEPEST}, as 0.3")
    spread = float(sigma)
    return lambda share: middle * math.exp(spread * _STANDARD.inv_cdf(share))


def _exponential(mean: str) -> Callable[[float], float]:
    scale = seconds(mean)
    return lambda share: -scale * math.log1p(-share)


_FORMS: dict[str, tuple[int, Callable[..., Callable[[float], float]]]] = {
    "uniform": (2, _uniform),
    "normal": (2, _normal),
    "lognormal": (2, _lognormal),
    "exponential": (1, _exponential),
}


def _share(seed: int, number: int) -> float:
    """A number in (0, 1) from (seed, number): splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    state = (seed * 0x9E3779B97F4A7C15 + (number + 1) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return (((state ^ (state >> 31)) >> 12) + 0.5) / (1 << 52)  # a bit fewer than a float has: 1 is never reached
