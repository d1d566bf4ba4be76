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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

# No more than twelve digits before the point: no delay needs them, and longer ones would overflow a float.
_DIGITS = r"(?:\d{1,12}(?:\.\d{0,18})?|\.\d{1,18})(?:e(?:\d|-\d{1,2}))?"
_NUMBER = re.compile(_DIGITS, re.ASCII)
_TIME = re.compile(rf"({_DIGITS})(us|ms|s|m|)", re.ASCII)
# To divide by: 9 / 1000 is the float nearest to 0.009, and 9 * 0.001 is not.
_PARTS_OF_A_SECOND = {"us": 1_000_000, "ms": 1000, "s": 1, "": 1}


@dataclass(frozen=True, slots=True)
class ParsedDelay:
    """A delay. `stated`: the largest number of seconds in the text, which a draw of a distribution may exceed."""

    text: str
    stated: float
    draw: Callable[[random.Random], float] = field(compare=False)
    is_fixed: bool = False

    def __str__(self) -> str:
        """Return it as it was written."""
        return self.text


def parse(text: str) -> ParsedDelay:
    """Parse a delay. Raises ValueError with the reason."""
    text = text.strip()
    kind, colon, arguments = text.partition(":")
    if not colon:
        value = seconds(text)
        return ParsedDelay(text, value, lambda _source: value, is_fixed=True)
    if kind not in _KINDS:
        msg = f"no delay is called {kind!r}: there are {', '.join(_KINDS)}"
        raise ValueError(msg)
    count, build = _KINDS[kind]
    values = arguments.split(",")
    if len(values) != count:
        msg = f"{kind} takes {count} value{'s' * (count > 1)}, not {len(values)}"
        raise ValueError(msg)
    return ParsedDelay(text, *build(*values))


def seconds(text: str) -> float:
    """Parse `0.12`, `2s`, `120ms`, `5us` or `1m` to seconds. Raises ValueError."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        msg = f"{text!r} is not a time like 120ms, 0.12 or 2s"
        raise ValueError(msg)
    number, unit = float(found[1]), found[2]
    return number * 60 if unit == "m" else number / _PARTS_OF_A_SECOND[unit]


def _uniform(low: str, high: str) -> _Parts:
    first, last = seconds(low), seconds(high)
    if first > last:
        msg = f"uniform goes from the lowest to the highest, not from {low} to {high}"
        raise ValueError(msg)
    return last, lambda source: source.uniform(first, last)


def _normal(mean: str, deviation: str) -> _Parts:
    middle, spread = seconds(mean), seconds(deviation)

    def draw(source: random.Random) -> float:
        # Drawn again below 0: clamping would heap up requests at exactly 0. The mean is at least 0, so two draws do.
        while (value := source.normalvariate(middle, spread)) < 0:
            pass
        return value

    return middle, draw


def _lognormal(median: str, sigma: str) -> _Parts:
    if _NUMBER.fullmatch(sigma.strip()) is None or float(sigma) > _STEEPEST:
        msg = f"the sigma of lognormal is a number from 0 to {_STEEPEST}, not {sigma!r}"
        raise ValueError(msg)
    middle, steepness = _above_zero(median, "median"), float(sigma)
    return middle, lambda source: source.lognormvariate(math.log(middle), steepness)


def _exponential(mean: str) -> _Parts:
    middle = _above_zero(mean, "mean")
    return middle, lambda source: source.expovariate(1 / middle)


def _above_zero(text: str, what: str) -> float:
    value = seconds(text)
    if value <= 0:
        msg = f"the {what} must be above 0, not {text}"
        raise ValueError(msg)
    return value


# Beyond it a draw of lognormal would overflow a float now and then.
_STEEPEST = 10

_Parts = tuple[float, "Callable[[random.Random], float]"]
_KINDS: dict[str, tuple[int, Callable[..., _Parts]]] = {
    "uniform": (2, _uniform),
    "normal": (2, _normal),
    "lognormal": (2, _lognormal),
    "exponential": (1, _exponential),
}
