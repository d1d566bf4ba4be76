"""The phases of a trial's requests: waits, connecting, first byte, body, as each library reports them.

Only a trial behind the rounds records them: `phase_observers` has what is done to each library.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

MOST_KEPT = 200_000
"""Values of a phase that are kept for its quantiles."""


class _PhaseSample:
    """The seconds of one phase: how many there were, their sum, and a sample of them in which each is as likely."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.kept: list[float] = []

    def add(self, seconds: float) -> None:
        self.count += 1
        self.total += seconds
        if self.count <= MOST_KEPT:
            self.kept.append(seconds)
        elif (place := random.randrange(self.count)) < MOST_KEPT:  # noqa: S311 - a sample, not a secret
            self.kept[place] = seconds


class Phases:
    """For each phase, its seconds in the requests that had it. Threads may add to it."""

    def __init__(self) -> None:
        self._is_active = False
        self._lock = threading.Lock()
        self._phases: dict[str, _PhaseSample] = {}

    def add(self, phase: str, seconds: float) -> None:
        """Record a phase of a request, unless the trial warms up."""
        if self._is_active:
            with self._lock:
                self._phases.setdefault(phase, _PhaseSample()).add(max(0.0, seconds))

    @contextlib.contextmanager
    def recorded(self, path: str) -> Iterator[None]:
        """Record meanwhile, and write what was found into a file whose path begins with `path`."""
        self._is_active = True
        try:
            yield
        finally:
            self._is_active = False
            found = {phase: vars(recorded) for phase, recorded in self._phases.items()}
            Path(f"{path}-{os.getpid()}.json").write_text(json.dumps(found), encoding="utf-8")
