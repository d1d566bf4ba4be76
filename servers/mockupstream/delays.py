"""Delays: a text (`120ms`, `lognormal:100ms,0.3`), and how to draw the seconds.

In the grammar, TIME is a number of seconds (`0.12`, `1e-3`, `2s`), milliseconds
(`120ms`), microseconds (`5us`) or minutes (`1m`). The lab has the same grammar; a test
compares the two.

    TIME                        constant
    uniform:TIME,TIME           between a lowest and a highest
    normal:TIME,TIME            mean and standard deviation, truncated at 0
    lognormal:TIME,NUMBER       median, and sigma of the logarithm
    exponential:TIME            mean
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

# More digits before the point would overflow a float, and no delay needs them.
_DIGITS = r"(?:\d{1,12}(?:\.\d{0,18})?|\.\d{1,18})(?:e(?:\d|-\d{1,2}))?"
_NUMBER = re.compile(_DIGITS, re.ASCII)
_TIME = re.compile(rf"({_DIGITS})(us|ms|s|m|)", re.ASCII)
# To divide by: 9 / 1000 is the float nearest to 0.009, and 9 * 0.001 is not.
_PARTS_OF_A_SECOND = {"us": 1_000_000, "ms": 1000, "s": 1, "": 1}
_STEEPEST = 10  # beyond it, a draw of lognormal could overflow a float


@dataclass(frozen=True, slots=True)
class ParsedDelay:
    """A delay.

    `stated`: the largest number of seconds in the text, which draws of a distribution
    can exceed.
    """

    text: str
    stated: float
    draw: Callable[[random.Random], float] = field(compare=False)
    is_fixed: bool = False

    def __str__(self) -> str:
        """Return the text as it was written."""
        return self.text


def parse(text: str) -> ParsedDelay:
    """Parse a delay. Raise ValueError with the reason."""
    text = text.strip()
    kind, colon, arguments = text.partition(":")
    if not colon:
        value = seconds(text)
        return ParsedDelay(text, value, lambda _source: value, is_fixed=True)
    match kind, arguments.split(","):
        case "uniform", [low, high]:
            first, last = seconds(low), seconds(high)
            if first > last:
                raise ValueError(
                    f"uniform goes from the lowest to the highest, not from {low} to"
                    f" {high}"
                )
            return ParsedDelay(text, last, lambda source: source.uniform(first, last))
        case "normal", [mean, deviation]:
            middle, spread = seconds(mean), seconds(deviation)
            return ParsedDelay(
                text, middle, lambda source: _draw_normal(source, middle, spread)
            )
        case "lognormal", [median, sigma]:
            if _NUMBER.fullmatch(sigma.strip()) is None or float(sigma) > _STEEPEST:
                raise ValueError(
                    f"the sigma of lognormal is a number from 0 to {_STEEPEST}, not"
                    f" {sigma!r}"
                )
            middle, steepness = _above_zero(median, "median"), float(sigma)
            return ParsedDelay(
                text,
                middle,
                lambda source: source.lognormvariate(math.log(middle), steepness),
            )
        case "exponential", [mean]:
            middle = _above_zero(mean, "mean")
            return ParsedDelay(
                text, middle, lambda source: source.expovariate(1 / middle)
            )
    kinds = (
        "uniform:TIME,TIME, normal:TIME,TIME, lognormal:TIME,NUMBER or exponential:TIME"
    )
    raise ValueError(f"{text!r} is not a delay: write a time, {kinds}")


def seconds(text: str) -> float:
    """Parse `0.12`, `2s`, `120ms`, `5us` or `1m` to seconds. Raise ValueError."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a time like 120ms, 0.12 or 2s")
    return (
        float(found[1]) * 60
        if found[2] == "m"
        else float(found[1]) / _PARTS_OF_A_SECOND[found[2]]
    )


def _draw_normal(source: random.Random, mean: float, deviation: float) -> float:
    # Draw again below 0, because clamping would pile up requests at exactly 0. It takes
    # two draws at most on average.
    while (value := source.normalvariate(mean, deviation)) < 0:
        pass
    return value


def _above_zero(text: str, what: str) -> float:
    if (value := seconds(text)) <= 0:
        raise ValueError(f"the {what} must be above 0, not {text}")
    return value
