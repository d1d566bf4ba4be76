"""Recorded allocations as stacks of functions, and what each package and function allocated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from clientlab.analysis.attribution import named
from clientlab.analysis.frame_origin import UNKNOWN, origin_of
from clientlab.analysis.stacks import MOST_DEPTH, Frame, Stack

NO_FUNCTION = "no Python function"
"""Stands for the caller of an allocation that a thread made outside of Python."""


@dataclass(frozen=True)
class Allocations:
    """How many there were, and the sum of the bytes that they requested."""

    bytes: int = 0
    count: int = 0

    def __add__(self, other: Allocations) -> Allocations:
        return Allocations(self.bytes + other.bytes, self.count + other.count)


@dataclass(frozen=True)
class MemoryRecording:
    """`peak`: bytes that each stack held when the process held most. `allocated`: all that each stack allocated."""

    peak: Mapping[Stack, int]
    allocated: Mapping[Stack, Allocations]

    @property
    def whole(self) -> Allocations:
        """All allocations."""
        return sum(self.allocated.values(), Allocations())

    def by_package(self) -> dict[str, Allocations]:
        """Package → what its functions allocated, those with most bytes first."""
        return self._by(origin_of)

    def by_function(self) -> dict[tuple[str, str], Allocations]:
        """Name and package of a function → what it allocated itself, those with most bytes first."""
        return self._by(_leaf)

    def _by(self, key: Callable[[Stack], Any]) -> dict[Any, Allocations]:
        found: dict[Any, Allocations] = {}
        for stack, allocations in self.allocated.items():
            place = key(stack)
            found[place] = found.get(place, Allocations()) + allocations
        return dict(sorted(found.items(), key=lambda one: -one[1].bytes))


def _leaf(stack: Stack) -> tuple[str, str]:
    names = list(named(stack))
    return names[-1] if names else (NO_FUNCTION, UNKNOWN)


def recording_of(content: bytes) -> MemoryRecording:
    """What `measuring.memory_reader` wrote. Raises ValueError for anything else."""
    document = json.loads(content)
    try:
        frames = [Frame(name, file) for name, file in document["frames"]]
        peak: Counter[Stack] = Counter()
        for places, size in document["peak"]:
            peak[_stack(frames, places)] += size
        allocated: dict[Stack, Allocations] = {}
        for places, size, count in document["allocated"]:
            stack = _stack(frames, places)
            allocated[stack] = allocated.get(stack, Allocations()) + Allocations(size, count)
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"the record of its allocations can't be read: {error!r}") from error
    return MemoryRecording(peak, allocated)


def _stack(frames: list[Frame], places: list[int]) -> Stack:
    return tuple(frames[place] for place in places[-MOST_DEPTH:])
