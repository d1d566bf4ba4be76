"""Recorded stacks: what py-spy writes in the format of speedscope, as counts of stacks of functions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MOST_DEPTH = 200
"""Frames of a stack that are kept, from its leaf."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A function and its file: a path, ``<frozen os>``, or the path of a native library."""

    name: str
    file: str

    @property
    def is_python(self) -> bool:
        """Whether Python code runs in it. Its name is a function's, and its file a module's or ``<...>``."""
        return self.file.endswith((".py", ".pyx", ".pyc")) or self.file.startswith("<")


@dataclass(frozen=True)
class StackRecording:
    """`stacks`: how often each was seen, over all threads and processes. `busiest`: samples of the thread with most."""

    stacks: Counter[Stack]
    busiest: int


Stack = tuple[Frame, ...]
"""From the root to the leaf."""


def read(paths: Iterable[Path]) -> StackRecording:
    """What the recorders wrote. Raises ValueError for a file that is no record."""
    found: Counter[Stack] = Counter()
    busiest = 0
    for path in paths:
        document = json.loads(path.read_bytes())
        try:
            frames = [Frame(one["name"], one.get("file") or "") for one in document["shared"]["frames"]]
            for thread in document["profiles"]:
                busiest = max(busiest, len(thread["samples"]))
                for stack in thread["samples"]:
                    found[tuple(frames[place] for place in stack[-MOST_DEPTH:])] += 1
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"{path.name}: not in the format of speedscope: {error!r}") from error
    return StackRecording(found, busiest)
