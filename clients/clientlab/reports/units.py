"""Numbers as people read them. Three significant digits, and the unit that suits the size."""

from __future__ import annotations

import math

from clientlab.analysis.ratios import Ratio

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_MEBIBYTE = 1 << 20
NOTHING = "-"


def digits(value: float, count: int = 3) -> str:
    """`count` significant digits, thousands apart, never in powers of ten."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, count - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


def time(seconds: float | None) -> str:
    """Seconds in the largest unit of which there is at least one."""
    if seconds is None:
        return NOTHING
    for size, unit in _TIMES:
        if abs(seconds) >= size:
            return f"{digits(seconds / size)} {unit}"
    return "0 s"


def minutes(seconds: float) -> str:
    """A length of time that one waits for: whole seconds, or minutes from two on."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def rate(per_second: float | None) -> str:
    """Requests a second."""
    return NOTHING if per_second is None else digits(per_second)


def memory(count: float | None) -> str:
    """Bytes in mebibytes."""
    return NOTHING if count is None else f"{digits(count / _MEBIBYTE)} MiB"


def micro(seconds: float | None) -> str:
    """Seconds in microseconds, for what is always that small."""
    return NOTHING if seconds is None else digits(seconds * 1e6)


def ratio(value: Ratio | None) -> str:
    """A ratio and, where there is one, its interval."""
    if value is None:
        return NOTHING
    if value.low is None or value.high is None:
        return f"{value.value:.2f}"
    return f"{value.value:.2f} ({value.low:.2f} to {value.high:.2f})"
