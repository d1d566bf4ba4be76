"""What a large body costs in memory: peak of a trial above its idle, read whole and in chunks, sent whole and streamed.

Without a warm-up: what a client takes for its first request is a part of the figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from benchmarks.figures import BenchmarkRow
from benchmarks.trials import Site, outcome_of
from clientlab.errors import LabError
from clientlab.measuring.trial_handle import TrialFailed
from clientlab.strategies import CLIENTS, STRATEGIES, check_capabilities
from clientlab.workload.workload import Workload

SIZE = 256 << 20
REQUESTS = 3
LIMIT = 60
_MIB = 1 << 20

_READ = {"path": f"/bytes/{SIZE}", "requests": REQUESTS, "warmup": 0}
_SENT = {"path": "/upload", "method": "POST", "upload_size": SIZE, "requests": REQUESTS, "warmup": 0}
_WAYS: tuple[tuple[str, dict[str, Any], bool], ...] = (
    ("read whole", _READ, False),
    ("read in chunks", _READ | {"read": "chunks"}, True),
    ("sent whole", _SENT, False),
    ("sent as a stream", _SENT | {"upload": "stream"}, True),
)


def rows(plain: Site, secure: Site) -> Iterator[BenchmarkRow]:
    """A row a client and way, in MiB above idle; those that a client can't are left out. HTTP/2 goes over TLS."""
    for client in (name for name, row in CLIENTS.items() if not row.program):
        site = plain if CLIENTS[client].http == "1.1" else secure
        for way, words, streams in _WAYS:
            workload = Workload(**words)
            try:
                check_capabilities(STRATEGIES[client], workload)
            except LabError:
                continue  # the lab refuses what its library can't
            yield _row(f"{SIZE // _MIB} MiB {way}, {client}", client, site, workload, streams=streams)


def _row(name: str, client: str, site: Site, workload: Workload, *, streams: bool) -> BenchmarkRow:
    target, met = (f"<= {LIMIT}", False) if streams else ("none", True)
    try:
        outcome = outcome_of(client, site, workload)
    except TrialFailed as failure:
        return BenchmarkRow(name, math.inf, math.inf, math.inf, str(failure), target, met, "MiB")
    above = ((outcome.peak_pss_bytes or math.nan) - (outcome.idle_pss_bytes or math.nan)) / _MIB
    seconds = outcome.wall_seconds / REQUESTS
    met = met or above <= LIMIT
    return BenchmarkRow(
        f"{name} ({seconds:.2f} s each)", above, above, above, f"{REQUESTS} requests", target, met, "MiB"
    )
