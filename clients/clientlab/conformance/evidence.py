"""What a drill's trial leaves: what the lab recorded, and what the counting server saw."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from clientlab.analysis import samples
from clientlab.analysis.samples import Samples
from clientlab.conformance.front import PORT_HEADER, http2_front
from clientlab.conformance.server import Answer, CountingServer, Seen, counting_server
from clientlab.conformance.tls import CA_FILE
from clientlab.measuring.connections import Address
from clientlab.measuring.recorder import TrialBench
from clientlab.measuring.trial import Outcome, run_trial
from clientlab.sample import ERROR_CODES, error_names
from clientlab.strategies import Strategy, client_row
from clientlab.workload import Workload

Watch = Callable[[Path], None]
"""Called with the trial's folder every half second while it runs."""

FEW_CAS = CA_FILE
"""For drills of many requests: httpx loads all CAs, 117 of them else, for each of its calls, without TLS as well."""


@dataclass(frozen=True)
class Evidence:
    """One trial from both ends.

    `kinds`: the number of each request that failed, and its kind. `server`: what reached it in the
    measured part.
    """

    strategy: Strategy
    workload: Workload
    outcome: Outcome
    samples: Samples
    kinds: dict[int, str]
    server: CountingServer = field(default_factory=CountingServer)

    def kind(self, number: int) -> str:
        """The kind of error of a request; ``none`` where it is recorded as none."""
        return self.kinds.get(number, "none")

    @property
    def requests(self) -> int:
        """Requests that were asked for; 0 of a duration."""
        return self.workload.requests or 0

    @property
    def http2(self) -> bool:
        """Whether the client speaks HTTP/2, and Caddy stands before the server."""
        return speaks_http2(self.strategy)

    @property
    def connections(self) -> int:
        """Connections of the client that a request came on."""
        if self.http2:
            return len({seen.headers[PORT_HEADER] for seen in self.server.seen})
        return self.server.connections

    @property
    def in_flight(self) -> int:
        """Requests that may be in flight at once."""
        return self.strategy.in_flight(self.workload.concurrency, self.workload.requests)


def _nothing(*_of: object) -> None:
    """Nothing is done."""


def measure(  # noqa: PLR0913 - the last three are seldom asked for
    strategy: Strategy,
    workload: Workload,
    url: str,
    *,
    at_ready: Callable[[], None] = _nothing,
    watch: Watch = _nothing,
    ca_file: str | None = None,
) -> Evidence:
    """One trial against the server at `url`. Raises TrialFailed, and what `watch` raises."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = TrialBench(strategy, workload, url, name, Address(urlsplit(url).port or 80), ca_file)
        tail = samples.Tail(folder)

        def look() -> int:
            watch(folder)
            return tail.finished()

        outcome = run_trial(bench, look, at_ready, _nothing)
        found = samples.read(folder, outcome.began)
        return Evidence(strategy, workload, outcome, found, _kinds(found, folder))


def serve(  # noqa: PLR0913 - the last three are seldom asked for
    strategy: Strategy,
    workload: Workload,
    answer: Callable[[Seen], Answer],
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
            url, ca_file = stack.enter_context(http2_front(server.port)).url, CA_FILE
        found = measure(strategy, workload, url, at_ready=server.reset, watch=watch, ca_file=ca_file)
        return replace(found, server=server)


def speaks_http2(strategy: Strategy) -> bool:
    """Whether it speaks HTTP/2 and no other, and so over TLS only."""
    return client_row(strategy.client).http == "2"


def _kinds(found: Samples, folder: Path) -> dict[int, str]:
    names = {code: kind for kind, code in ERROR_CODES.items()}
    names |= {code: kind for code, (kind, _) in error_names(folder).items()}
    pairs = zip(found.numbers.tolist(), found.records["error"].tolist(), strict=True)
    return {number: names[code] for number, code in pairs if code}
