"""A counter that all processes of a pool share: each number of an open load is taken once, by whoever is free."""

from __future__ import annotations

from multiprocessing.context import BaseContext


class SharedCounter:
    """Counts from 0 on. It is handed to pool processes when they start, and not later."""

    def __init__(self, multiprocessing: BaseContext) -> None:
        self._next = multiprocessing.Value("q", 0)

    def take(self) -> int:
        """The next number."""
        with self._next.get_lock():
            number: int = self._next.value
            self._next.value = number + 1
        return number
