"""A limit on lines in the log that any client can cause: an attack must not fill the disk."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

REQUESTS = "clientlab.service.requests"
"""The logger of refused requests."""

MOST_LINES = 20
SECONDS = 10.0

_LOGGERS = (REQUESTS, "uvicorn.error", "asyncio")
_log = logging.getLogger("clientlab.service")


class LogLimit(logging.Filter):
    """Lets the first 20 lines of each 10 seconds pass, and counts the others."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._until = 0.0
        self._passed = self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - all lines are alike
        with self._lock:
            if time.monotonic() >= self._until:
                self._sum_up()
            if self._passed < MOST_LINES:
                self._passed += 1
                return True
            self._left_out += 1
            return False

    def look(self) -> None:
        """Log how many lines were left out, when their 10 seconds are over."""
        with self._lock:
            if self._left_out and time.monotonic() >= self._until:
                self._sum_up()

    def _sum_up(self) -> None:
        if self._left_out:
            _log.warning("%d more lines about requests were left out of the log", self._left_out)
        self._passed = self._left_out = 0
        self._until = time.monotonic() + SECONDS


@contextmanager
def limited() -> Iterator[LogLimit]:
    """Limit the log meanwhile."""
    limit = LogLimit()
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(limit)
    try:
        yield limit
    finally:
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(limit)
