"""Delays: the text of a user (`120ms`, `lognormal:100ms,0.3`) and the seconds that it means.

Grammar, where TIME is a number of seconds (`0.12`, `1e-3`, `2s`), milliseconds (`120ms`), microseconds (`5us`) or
minutes (`1m`). The lab has the same grammar; a test compares both.

    TIME                        always the same
    uniform:TIME,TIME           between a lowest and a highest
    normal:TIME,TIME            mean and standard deviation, truncated at 0
    lognormal:TIME,NUMBER       median, and sigma of the logarithm
    exponential:TIME            mean
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

# No more than twelve digits before the point: no delay needs them, and longer ones would overflow a float.
_DIGITS = r"(?:\d{1,12}(?:\.\d{0,18})?|\.\d{1,18})(?:e(?:\d|-\d{1,2}))?"
_NUMBER = re.compile(_DIGITS, re.ASCII)
_TIME = re.compile(rf"({_DIGITS})(us|ms|s|m|)", re.ASCII)
# To divide by: 9 / 1000 is the float nearest to 0.009, and 9 * 0.001 is not.
_PARTS_OF_A_SECOND = {"us": 1_000_000, "ms": 1000, "s": 1, "": 1}


class ParsedDelay(Protocol):
    """A parsed delay. `draw` returns seconds; `str` returns its text."""

    @property
    def stated(self) -> float:
        """The largest number of seconds in the text. A draw of an unbounded distribution can be larger."""
        ...

    def draw(self, source: random.Random) -> float:
        """Return the seconds to wait this time, at least 0."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always the same number of seconds."""

    seconds: float

    @property
    def stated(self) -> float:
        """The seconds."""
        return self.seconds

    def draw(self, source: random.Random) -> float:  # noqa: ARG002
        """Return the seconds; nothing is drawn."""
        return self.seconds

    def __str__(self) -> str:
        """Return for example `120ms`."""
        return _written(self.seconds)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Uniform between `low` and `high` seconds."""

    low: float
    high: float

    @property
    def stated(self) -> float:
        """The upper end."""
        return self.high

    def draw(self, source: random.Random) -> float:
        """Return seconds between both ends."""
        return source.uniform(self.low, self.high)

    def __str__(self) -> str:
        """Return for example `uniform:50ms,150ms`."""
        return f"uniform:{_written(self.low)},{_written(self.high)}"


@dataclass(frozen=True, slots=True)
class Normal:
    """Normal with `mean` and standard `deviation` in seconds, truncated at 0."""

    mean: float
    deviation: float

    @property
    def stated(self) -> float:
        """The mean."""
        return self.mean

    def draw(self, source: random.Random) -> float:
        """Draw again below 0: clamping would heap up requests at exactly 0. The mean is at least 0, so two draws do."""
        while (seconds := source.normalvariate(self.mean, self.deviation)) < 0:
            pass
        return seconds

    def __str__(self) -> str:
        """Return for example `normal:100ms,10ms`."""
        return f"normal:{_written(self.mean)},{_written(self.deviation)}"


@dataclass(frozen=True, slots=True)
class LogNormal:
    """The logarithm is normal: `median` in seconds, `sigma` the standard deviation of the natural logarithm."""

    median: float
    sigma: float

    @property
    def stated(self) -> float:
        """The median."""
        return self.median

    def draw(self, source: random.Random) -> float:
        """Return exp(N(ln median, sigma)): the median of a log-normal is exp of its mu."""
        return source.lognormvariate(math.log(self.median), self.sigma)

    def __str__(self) -> str:
        """Return for example `lognormal:100ms,0.3`."""
        return f"lognormal:{_written(self.median)},{self.sigma!r}"


@dataclass(frozen=True, slots=True)
class Exponential:
    """Exponential with `mean` in seconds."""

    mean: float

    @property
    def stated(self) -> float:
        """The mean."""
        return self.mean

    def draw(self, source: random.Random) -> float:
        """Return seconds; the rate of an exponential is the inverse of its mean."""
        return source.expovariate(1 / self.mean)

    def __str__(self) -> str:
        """Return for example `exponential:100ms`."""
        return f"exponential:{_written(self.mean)}"


def parse(text: str) -> ParsedDelay:
    """Parse a delay. Raises ValueError with the reason."""
    kind, colon, arguments = text.partition(":")
    if not colon:
        return Fixed(seconds(text))
    if kind not in _KINDS:
        msg = f"no delay is called {kind!r}: there are {', '.join(_KINDS)}"
        raise ValueError(msg)
    count, build = _KINDS[kind]
    values = arguments.split(",")
    if len(values) != count:
        msg = f"{kind} takes {count} value{'s' * (count > 1)}, not {len(values)}"
        raise ValueError(msg)
    return build(*values)


def seconds(text: str) -> float:
    """Parse `0.12`, `2s`, `120ms`, `5us` or `1m` to seconds. Raises ValueError."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        msg = f"{text!r} is not a time like 120ms, 0.12 or 2s"
        raise ValueError(msg)
    number, unit = float(found[1]), found[2]
    return number * 60 if unit == "m" else number / _PARTS_OF_A_SECOND[unit]


def _uniform(low: str, high: str) -> Uniform:
    delay = Uniform(seconds(low), seconds(high))
    if delay.low > delay.high:
        msg = f"uniform goes from the lowest to the highest, not from {low} to {high}"
        raise ValueError(msg)
    return delay


def _normal(mean: str, deviation: str) -> Normal:
    return Normal(seconds(mean), seconds(deviation))


def _lognormal(median: str, sigma: str) -> LogNormal:
    if _NUMBER.fullmatch(sigma.strip()) is None or float(sigma) > _STEEPEST:
        msg = f"the sigma of lognormal is a number from 0 to {_STEEPEST}, not {sigma!r}"
        raise ValueError(msg)
    return LogNormal(_above_zero(median, "median"), float(sigma))


def _exponential(mean: str) -> Exponential:
    return Exponential(_above_zero(mean, "mean"))


def _above_zero(text: str, what: str) -> float:
    value = seconds(text)
    if value <= 0:
        msg = f"the {what} must be above 0, not {text}"
        raise ValueError(msg)
    return value


def _written(value: float) -> str:
    # Twelve decimals of a millisecond lose nothing that a user can write, and hide the last bit of the float.
    return f"{value * 1000:.12f}".rstrip("0").rstrip(".") + "ms"


# Beyond it a draw of lognormal would overflow a float now and then.
_STEEPEST = 10

_KINDS: dict[str, tuple[int, Callable[..., ParsedDelay]]] = {
    "uniform": (2, _uniform),
    "normal": (2, _normal),
    "lognormal": (2, _lognormal),
    "exponential": (1, _exponential),
}
