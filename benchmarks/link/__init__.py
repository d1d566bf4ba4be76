"""The link against arithmetic: ``scripts/bench link``.

Nothing here uses the link's own model. What a transfer takes is computed from the round trips of TCP, TLS and slow
start; measured are sockets of the operating system, and the lab's strategies.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import BenchmarkRow
from benchmarks.link import buffers, crowd, transfers


def rows(rounds: int) -> Iterator[BenchmarkRow]:
    """Transfers against arithmetic, many connections, and full buffers."""
    yield from transfers.rows(max(3, rounds // 4))
    yield from crowd.rows()
    yield from buffers.rows()
