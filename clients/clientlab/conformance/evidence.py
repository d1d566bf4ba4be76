"""The evidence of a scenario's trial: what the lab recorded, and what the counting server received."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from clientlab.conformance.h2_proxy import PORT_HEADER, h2_proxy
from clientlab.conformance.server import CountingServer, Seen, ServerAnswer, counting_server
from clientlab.conformance.tls import CA_FILE
from clientlab.measuring import measurement
from clientlab.measuring.connections import PeerAddress
from clientlab.measuring.context import TrialContext
from clientlab.measuring.outcome import Outcome
from clientlab.samples.log_reader import Samples
from clientlab.strategies import Strategy, client_spec
from clientlab.workload.workload import Workload

Watch = Callable[[Path], None]
"""Called with the trial's folder every half second while it runs."""

FEW_CAS = CA_FILE
"""A file with few CAs, for scenarios of many requests: httpx loads all CAs for each call, even without TLS."""


@dataclass(frozen=True)
class Evidence:
    """One trial, seen by the lab and by the server.

    `kinds`: the number of each request that failed, and its kind. `server`: what reached it in the
    measured part. `stalled`: why the trial failed in which the server was silent; this one is the same without silence.
    """

    strategy: Strategy
    workload: Workload
    outcome: Outcome
    samples: Samples
    kinds: dict[int, str]
    server: CountingServer = field(default_factory=CountingServer)
    stalled: str = ""

    def kind(self, number: int) -> str:
        """The error kind of a request; ``none`` if it succeeded."""
        return self.kinds.get(number, "none")

    @property
    def requests(self) -> int:
        """Number of requests of the workload; 0 if a duration ends it."""
        return self.workload.requests or 0

    @property
    def http2(self) -> bool:
        """Whether the client speaks HTTP/2, and Caddy stands before the server."""
        return speaks_http2(self.strategy)

    @property
    def connections(self) -> int:
        """The connections of the client that carried a request."""
        if self.http2:
            return len({seen.headers[PORT_HEADER] for seen in self.server.seen})
        return self.server.connections

    @property
    def in_flight(self) -> int:
        """Requests that may be in flight at once."""
        return self.strategy.in_flight(self.workload.concurrency, self.workload.requests)


def _nothing(*_arguments: object) -> None:
    """Default callback."""


def measure(  # noqa: PLR0913 - the last three are seldom given
    strategy: Strategy,
    workload: Workload,
    url: str,
    *,
    on_start: Callable[[], None] = _nothing,
    watch: Watch = _nothing,
    ca_file: str | None = None,
) -> Evidence:
    """One trial against the server at `url`. Raises TrialFailed, and what `watch` raises."""
    with tempfile.TemporaryDirectory() as folder:
        address = PeerAddress(urlsplit(url).port or 80)
        context = TrialContext(strategy, workload, url, folder, address, ca_file)
        found = measurement.measure(context, on_start=on_start, on_progress=lambda _finished: watch(Path(folder)))
        return Evidence(strategy, workload, found.outcome, found.samples, _kinds(found.samples))


def serve(  # noqa: PLR0913 - the last three are seldom given
    strategy: Strategy,
    workload: Workload,
    answer: Callable[[Seen], ServerAnswer],
    *,
    hold: float = 0.0,
    watch: Watch = _nothing,
    ca_file: str | None = None,
) -> Evidence:
    """One trial against a counting server that answers so, and forgets the warm-up.

    A client of HTTP/2 speaks to Caddy before it. Raises CannotProvoke where there is none.
    """
    with counting_server(answer, hold) as server, contextlib.ExitStack() as stack:
        url = server.url
        if speaks_http2(strategy):
            url, ca_file = stack.enter_context(h2_proxy(server.port)).url, CA_FILE
        found = measure(strategy, workload, url, on_start=server.reset, watch=watch, ca_file=ca_file)
        return replace(found, server=server)


def speaks_http2(strategy: Strategy) -> bool:
    """Whether it speaks HTTP/2 and no other, and so over TLS only."""
    return client_spec(strategy.client).http == "2"


def _kinds(samples: Samples) -> dict[int, str]:
    """Request number → error kind, of the requests that failed."""
    pairs = zip(samples.numbers.tolist(), samples.records["error"].tolist(), strict=True)
    return {number: samples.kinds[code] for number, code in pairs if code}
