"""The worker's log: lines on standard error."""

from __future__ import annotations

import sys


def log(message: str) -> None:
    """Write one line; line breaks inside `message` become spaces."""
    print(f"clientlab work: {' '.join(message.split())}", file=sys.stderr, flush=True)  # noqa: T201
