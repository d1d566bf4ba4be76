"""An event loop whose time passes only when nothing is left to be done: no wait takes any time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualClock(selectors.DefaultSelector):
    """Its loop waits for timers only. A coroutine that waits for a thread or a socket would wait for ever."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def monotonic(self) -> float:
        """Seconds since it was made; in place of ``time.monotonic``."""
        return self._now

    def time(self) -> float:
        """The same as Unix seconds; in place of ``time.time``."""
        return 1_700_000_000.0 + self._now

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Go to the next timer at once."""
        self._now += max(0.0, timeout or 0.0)
        return super().select(None if timeout is None else 0)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The same as ``asyncio.run``, on this clock."""
        with asyncio.Runner(loop_factory=lambda: _Loop(self)) as runner:
            return runner.run(work)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.time = clock.monotonic  # type: ignore[method-assign]
