"""Differences of many values by rank, exactly, without making all of them.

n values have n(n-1)/2 differences. To leave out one value removes n-1 of them, so all medians lie among n neighbours of
the ordered differences. Only these are listed, which takes O(n log² n) steps, where ordering all differences without
each value takes O(n³ log n).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from clientlab.analysis.typical import Floats

_LISTED = 20_000
"""So few differences are put in order at once."""

_SAMPLED = 1_000
"""Differences that are drawn to choose the next one to compare with."""

_Places = npt.NDArray[np.int64]


def medians(values: Floats) -> tuple[float, Floats]:
    """The median difference between two of the values (one axis, at least 3 values), and that without each of them."""
    n = len(values)
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    every, fewer = n * (n - 1) // 2, (n - 1) * (n - 2) // 2
    near = _Neighbours(ordered, (fewer - 1) // 2, min(fewer // 2 + n - 1, every - 1))
    whole = (near.at((every - 1) // 2) + near.at(every // 2)) / 2
    without = np.empty(n)
    without[order] = (near.without_each((fewer - 1) // 2) + near.without_each(fewer // 2)) / 2
    return whole, without


def between(these: Floats, those: Floats, ranks: Sequence[int]) -> list[float]:
    """The differences of these ranks (from 0) among those of each of `these` to each of `those` (one axis each)."""
    lower, upper = np.sort(those), np.sort(these)
    return [_difference_at(lower, upper, np.zeros(len(lower), np.int64), rank) for rank in ranks]


class _Neighbours:
    """The differences of ordered values from one rank to another (from 0), with the values that each is between."""

    def __init__(self, ordered: Floats, first: int, last: int) -> None:
        n = len(ordered)
        behind = np.arange(1, n + 1)
        self._low, self._high = (_difference_at(ordered, ordered, behind, rank) for rank in (first, last))
        # Ends of the partners: the values from one's own place to an end differ by no more than the difference.
        lows = _ends(ordered, ordered, behind, self._low, with_equal=True)
        between = np.maximum(_ends(ordered, ordered, behind, self._high, with_equal=False) - lows, 0)
        self._below = int((lows - behind).sum())
        self._below_of = _partners(lows)
        one = np.repeat(np.arange(n), between)
        other = np.arange(len(one)) + np.repeat(lows - np.cumsum(between) + between, between)
        found = ordered[other] - ordered[one]
        order = np.argsort(found, kind="stable")
        self._found = found[order]
        self._of = np.concatenate([one[order], other[order]])
        self._rank = np.tile(np.arange(len(found)), 2)

    def at(self, rank: int) -> float:
        """The difference of a rank among all of them."""
        return float(self._of_rank(np.array([rank - self._below]), len(self._found))[0])

    def without_each(self, rank: int) -> Floats:
        """The difference of a rank among those without each of the values."""
        ranks = rank - (self._below - self._below_of)
        n = len(ranks)
        # A listed difference of a value precedes the one of the wanted rank if fewer others than that precede it.
        order = np.lexsort((self._rank, self._of))
        of, place = self._of[order], self._rank[order]
        own = np.bincount(of, minlength=n)
        others = place - (np.arange(len(of)) - np.repeat(np.cumsum(own) - own, own))
        skipped = np.bincount(of[others <= ranks[of]], minlength=n)
        return self._of_rank(np.where(ranks < 0, -1, ranks + skipped), len(self._found))

    def _of_rank(self, ranks: _Places, listed: int) -> Floats:
        """By rank among the listed ones; below 0 the lowest of all, and beyond them the highest."""
        every = np.concatenate([[self._low], self._found, [self._high]])
        found: Floats = every[np.clip(ranks + 1, 0, listed + 1)]
        return found


def _difference_at(lower: Floats, upper: Floats, first: _Places, rank: int) -> float:
    """The difference of a rank among those of each lower value to the upper ones from its first place on.

    Both are in order. A difference is drawn, and those on its wrong side are left out, and so on.
    """
    n = len(lower)
    begin, end = first, np.full(n, len(upper))
    draw = np.random.default_rng(0)  # decides only how soon it is found
    while True:
        counts = end - begin
        before, total = int((begin - first).sum()), int(counts.sum())
        if total <= _LISTED:
            one = np.repeat(np.arange(n), counts)
            other = np.arange(total) + np.repeat(begin - np.cumsum(counts) + counts, counts)
            return float(np.partition(upper[other] - lower[one], rank - before)[rank - before])
        upto = np.cumsum(counts)
        drawn = draw.integers(0, total, _SAMPLED)
        one = np.searchsorted(upto, drawn, side="right")
        sample = np.sort(upper[begin[one] + drawn - (upto - counts)[one]] - lower[one])
        pivot = float(sample[(rank - before) * _SAMPLED // total])
        least, most = (_ends(lower, upper, first, pivot, with_equal=equal) for equal in (False, True))
        if rank < int((least - first).sum()):
            end = least
        elif rank >= int((most - first).sum()):
            begin = most
        else:
            return pivot


def _ends(lower: Floats, upper: Floats, first: _Places, difference: float, *, with_equal: bool) -> _Places:
    """For each lower value, the end of the upper ones that are above it by less (`with_equal`: or by as much).

    By the differences as they are rounded, which never fall from one value to the next.
    """
    m = len(upper)
    least, most = first, np.full(len(lower), m)
    for _ in range(m.bit_length()):
        middle = (least + most) // 2
        found = upper[np.minimum(middle, m - 1)] - lower
        nearer = (middle < most) & ((found <= difference) if with_equal else (found < difference))
        least, most = np.where(nearer, middle + 1, least), np.where(nearer, most, middle)
    return least


def _partners(ends: _Places) -> _Places:
    """How many differences each value has a part in, of those from each value to the ones before an end."""
    n = len(ends)
    later = ends - np.arange(1, n + 1)
    # Value k is behind value i if i < k < ends[i].
    steps = np.bincount(np.arange(1, n + 1), minlength=n + 2) - np.bincount(ends, minlength=n + 2)
    return later + np.cumsum(steps)[:n]
