"""Numbers as people read them: three significant digits, and the unit that suits the size.

The lab computes in seconds, bytes and shares. This module is the only one that converts them for readers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

Unit = Literal["seconds", "per-second", "bytes", "bytes-per-second", "count", "share"]
"""The unit of a figure."""

_SIZES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
WRITTEN: dict[Unit, dict[str, float]] = {
    "seconds": {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0},
    "per-second": {"": 1.0, "/s": 1.0},
    "bytes": _SIZES,
    "bytes-per-second": {f"{suffix}/s": size for suffix, size in _SIZES.items()},
    "count": {"": 1.0},
    "share": {"%": 0.01},
}
"""How a reader writes a value: unit → suffix → its size."""


def wanted(unit: Unit, written: str) -> str:
    """How to write a value of a unit, for the message about one without it. `written`: what stands before it."""
    suffixes = [suffix for suffix in WRITTEN[unit] if suffix]
    if not suffixes:
        return "write it in a bare number"
    usual = "ms" if "ms" in suffixes else suffixes[0]
    return f"write it in {' or '.join(suffixes)}, as '{written}{usual}'"


UNKNOWN = "–"
"""What every report prints for a figure that was not measured."""

AT_LEAST = "≥ "
"""What stands before a lower bound."""

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ((2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_DIGITS, _MOST_DIGITS = 3, 6
_ROUNDING = 1e-9
"""Relative. Ends that differ by less differ by the rounding of computations."""

Interval = tuple[float, float]


class _Estimate(Protocol):
    @property
    def value(self) -> float: ...

    @property
    def interval(self) -> Interval | None: ...


def bytes_of(text: str, unit: str | None = None) -> int:
    """Parse ``512MiB`` or ``64KB``. `unit`: of a number without one; None: it has to have one. Raises ValueError."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?) ?([A-Za-z]*)", text.strip())
    size = _SIZES.get(found[2] or unit or "") if found else None
    if found is None or size is None:
        example = "1000000" if unit else "1000000B"
        raise ValueError(f"{text.strip()!r} is not a number of bytes; write 512MiB, 2GiB or {example}")
    return int(float(found[1]) * size)


def digits(value: float, count: int = _DIGITS) -> str:
    """The value with `count` significant digits and separated thousands, never in powers of ten.

    Digits before the decimal point are never cut: 1,234 stays 1,234.
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, count - 1 - math.floor(math.log10(abs(_rounded(value, count)))))
    return f"{value:,.{places}f}"


def signed(value: float) -> str:
    """The value with its sign."""
    return f"{'' if value < 0 else '+'}{digits(value)}"


def time(seconds: float | None) -> str:
    """Seconds in the largest unit of which there is at least one."""
    return _in_unit(seconds, _TIMES, "s")


def minutes(seconds: float) -> str:
    """A length of time that one waits for: whole seconds, or minutes from two on."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def rate(per_second: float | None) -> str:
    """Events per second, without the unit."""
    return UNKNOWN if per_second is None else digits(per_second)


def memory(count: float | None) -> str:
    """Bytes in the largest unit of which there is at least one."""
    return _in_unit(count, _BYTES, "B")


def transfer(per_second: float | None) -> str:
    """Bytes per second in the largest unit of which there is at least one."""
    return UNKNOWN if per_second is None else f"{memory(per_second)}/s"


def count(number: float | None) -> str:
    """A count, or a median of counts; whole numbers have no decimals."""
    if number is None:
        return UNKNOWN
    return f"{number:,.0f}" if number == int(number) else digits(number)


def share(part: float | None) -> str:
    """A share of 1 in per cent."""
    if part is None:
        return UNKNOWN
    return f"{digits(part * 100)} %" if part else "0"


_BY_UNIT: dict[Unit, Callable[[float | None], str]] = {
    "seconds": time,
    "per-second": rate,
    "bytes": memory,
    "bytes-per-second": transfer,
    "count": count,
    "share": share,
}


def of_unit(value: float | None, unit: Unit, *, at_least: bool = False) -> str:
    """The value of a figure in that unit. `at_least`: it is a lower bound, "≥ 300 ms"."""
    shown = _BY_UNIT[unit](value)
    return f"{AT_LEAST}{shown}" if at_least and value is not None else shown


def ratio(value: float | None, interval: Interval | None = None) -> str:
    """A ratio, and its confidence interval where there is one: `1.50 (1.23 to 1.82)`.

    More than three digits are printed where three would make different ends of the interval equal, or would move an
    end across 1, which decides whether two arms differ.
    """
    if value is None:
        return UNKNOWN
    if interval is None:
        return digits(value)
    enough = (count for count in range(_DIGITS, _MOST_DIGITS) if _faithful(interval, count))
    count = next(enough, _MOST_DIGITS)
    low, high = (digits(end, count) for end in interval)
    return f"{digits(value, count)} ({low} to {high})"


def ratio_of(estimate: _Estimate | None) -> str:
    """An estimated ratio with its interval."""
    return UNKNOWN if estimate is None else ratio(estimate.value, estimate.interval)


def _in_unit(value: float | None, sizes: Sequence[tuple[float, str]], smallest: str) -> str:
    if value is None:
        return UNKNOWN
    for size, unit in sizes:
        if abs(_rounded(value / size, _DIGITS)) >= 1:
            return f"{digits(value / size)} {unit}"
    return f"0 {smallest}"


def _faithful(interval: Interval, count: int) -> bool:
    """Whether the ends, rounded to `count` digits, differ where they do, and stay on their sides of 1."""
    if math.isclose(*interval, rel_tol=_ROUNDING):
        return True
    low, high = (_rounded(end, count) for end in interval)
    return low != high and [_side(low), _side(high)] == list(map(_side, interval))


def _side(value: float) -> int:
    return (value > 1) - (value < 1)


def _rounded(value: float, count: int) -> float:
    return float(f"{value:.{count - 1}e}")
