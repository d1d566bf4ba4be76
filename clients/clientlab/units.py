"""Numbers for readers: three significant digits, in a unit that suits the size.

The lab computes in seconds, bytes and shares. Only this module converts them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Literal, Protocol

Unit = Literal["seconds", "per-second", "bytes", "bytes-per-second", "count", "share"]
"""The unit of a figure."""

_SIZES = {
    "B": 1.0,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
}
WRITTEN: dict[Unit, dict[str, float]] = {
    "seconds": {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0},
    "per-second": {"": 1.0, "/s": 1.0},
    "bytes": _SIZES,
    "bytes-per-second": {f"{suffix}/s": size for suffix, size in _SIZES.items()},
    "count": {"": 1.0},
    "share": {"%": 0.01},
}
"""How users write a value: unit → suffix → size."""

UNKNOWN = "–"  # in reports, for a figure that was not measured

_TIMES = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
_BYTES = {"MiB": 2.0**20, "KiB": 2.0**10, "B": 1.0}
Interval = tuple[float, float]


class _Estimate(Protocol):
    @property
    def value(self) -> float: ...
    @property
    def interval(self) -> Interval | None: ...


def wanted(unit: Unit, written: str) -> str:
    """Return how to write a value of a unit, for an error message.

    `written`: the text without a unit.
    """
    suffixes = filter(None, WRITTEN[unit])
    names = " or ".join(suffixes) or "a bare number"
    if unit == "seconds":
        return f"write it in {names}, like '{written}ms'"
    return f"write it in {names}"


def parse_bytes(text: str) -> int:
    """Parse ``512MiB``, ``64KB`` or a number of bytes. Raise ValueError."""
    text = text.strip()
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?) ?([A-Za-z]*)", text)
    if match is not None:
        number, suffix = match.groups()
        size = _SIZES.get(suffix or "B")
        if size is not None:
            return int(float(number) * size)
    raise ValueError(
        f"{text!r} is not a number of bytes; write 512MiB, 2GiB or 1000000B"
    )


def digits(value: float, count: int = 3) -> str:
    """Return the value with `count` significant digits: 1.23; 0.0123.

    It never has fewer digits than the whole number: 1,234.
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = abs(_rounded(value, count))
    exponent = math.floor(math.log10(rounded))
    places = max(0, count - 1 - exponent)
    return f"{value:,.{places}f}"


def signed(value: float) -> str:
    """Return the value with its sign."""
    sign = "" if value < 0 else "+"
    return sign + digits(value)


def time(seconds: float | None) -> str:
    """Return seconds in the largest unit that leaves a number of at least 1."""
    if seconds is None:
        return UNKNOWN
    return _in_unit(seconds, _TIMES, "s")


def time_change(seconds: float) -> str:
    """Return a difference of seconds with its sign."""
    sign = "-" if seconds < 0 else "+"
    return sign + time(abs(seconds))


def rounds(least: int) -> str:
    """Return how many rounds decide: `least` often, and twice as many almost always."""
    return f"{least} to {2 * least} rounds"


def minutes(seconds: float) -> str:
    """Return a time to wait in whole seconds, or in minutes from two minutes on."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def rate(per_second: float | None) -> str:
    """Return events per second, without the unit."""
    if per_second is None:
        return UNKNOWN
    return digits(per_second)


def memory(count: float) -> str:
    """Return bytes in the largest unit that leaves a number of at least 1."""
    return _in_unit(count, _BYTES, "B")


def count(number: float) -> str:
    """Return a count, or a median of counts: whole numbers have no decimals."""
    if number == int(number):
        return f"{number:,.0f}"
    return digits(number)


def share(part: float) -> str:
    """Return a share as a percentage."""
    if not part:
        return "0"
    return f"{digits(part * 100)} %"


_BY_UNIT: dict[Unit, Callable[[float], str]] = {
    "seconds": time,
    "per-second": rate,
    "bytes": memory,
    "bytes-per-second": lambda value: f"{memory(value)}/s",
    "count": count,
    "share": share,
}


def of_unit(value: float | None, unit: Unit, *, at_least: bool = False) -> str:
    """Return a figure's value in its unit.

    `at_least`: mark it as a lower bound, "≥ 300 ms".
    """
    if value is None:
        return UNKNOWN
    mark = "≥ " if at_least else ""
    return mark + _BY_UNIT[unit](value)


def ratio(value: float | None, interval: Interval | None = None) -> str:
    """Return a ratio with its confidence interval, if any: `1.50 (1.23 to 1.82)`.

    It has more than three digits if three would make the ends of the interval equal, or
    move one to or across 1.
    """
    if value is None:
        return UNKNOWN
    if interval is None:
        return digits(value)
    count = _digits_of(interval)
    low, high = interval
    return f"{digits(value, count)} ({digits(low, count)} to {digits(high, count)})"


def lower_end(interval: Interval) -> str:
    """Return the lower end of a ratio's interval, as `ratio` shows it."""
    return digits(interval[0], _digits_of(interval))


def _digits_of(interval: Interval) -> int:
    """Return how many digits the ends of an interval need."""
    for count in (3, 4, 5):
        if _keeps_meaning(interval, count):
            return count
    return 6


def ratio_of(estimate: _Estimate | None) -> str:
    """Return an estimated ratio with its interval."""
    if estimate is None:
        return UNKNOWN
    return ratio(estimate.value, estimate.interval)


def _in_unit(value: float, sizes: Mapping[str, float], of_zero: str) -> str:
    for unit, size in sizes.items():
        number = value / size
        if abs(_rounded(number, 3)) >= 1:
            return f"{digits(number)} {unit}"
    return f"0 {of_zero}"


def _keeps_meaning(interval: Interval, count: int) -> bool:
    """Return whether rounding leaves the ends different and on their sides of 1."""
    if math.isclose(*interval, rel_tol=1e-9):  # they differ only by rounding errors
        return True
    rounded = [_rounded(end, count) for end in interval]
    if rounded[0] == rounded[1]:
        return False
    return all(map(_is_same_side, interval, rounded))


def _is_same_side(end: float, rounded: float) -> bool:
    if end > 1:
        return rounded > 1
    if end < 1:
        return rounded < 1
    return rounded == 1


def _rounded(value: float, count: int) -> float:
    return float(f"{value:.{count - 1}e}")
