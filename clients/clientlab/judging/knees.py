"""The knee of a sweep in a phrase. Its interval is stated with it, or no knee is claimed."""

from __future__ import annotations

from collections.abc import Sequence

from clientlab.analysis.sweeps import Value


def shows_knee(axis: Sequence[Value], between: tuple[int, int] | None) -> bool:
    """Whether the rounds rule out a point of the sweep at least."""
    return between is not None and between[1] - between[0] + 1 < len(axis)


def knee_text(axis: Sequence[Value], between: tuple[int, int] | None) -> str:
    """Where the knee is. `between`: the first and the last index on the axis that it may have; None if unknown."""
    if between is None:
        return "knee unknown: an interval needs 3 rounds"
    first, last = between
    if first == last:
        return f"knee at {axis[first]}"
    if not shows_knee(axis, between):
        return "knee unknown: these rounds leave every point of the sweep for it"
    return f"knee between {axis[first]} and {axis[last]} (95 %)"
