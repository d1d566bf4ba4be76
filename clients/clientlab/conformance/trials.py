"""One trial of a strategy: what the lab recorded, and what the server received."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clientlab.conformance.results import ITS_KIND, SWALLOWED, Cause
from clientlab.conformance.server import CA_FILE, CountingServer, Respond, counting_server, server_context
from clientlab.measuring import measurement
from clientlab.measuring.connections import PeerAddress
from clientlab.measuring.context import TrialContext
from clientlab.measuring.outcome import Outcome
from clientlab.samples.log_reader import Samples
from clientlab.strategies import ClientSpec, Strategy, client_spec
from clientlab.workload.workload import Workload

Watch = Callable[[Path], None]
"""Called with the trial's folder every half second while it runs."""


@dataclass(frozen=True)
class Evidence:
    """One trial: `server` has what reached it, `numbers` the recorded requests, `kinds` the errors among them."""

    strategy: Strategy
    workload: Workload
    server: CountingServer
    outcome: Outcome
    samples: Samples
    numbers: list[int]
    kinds: dict[int, str]
    client: ClientSpec

    def fault(self, number: int, expected: str) -> tuple[str, Cause | None, str]:
        """Return what is wrong, why, and the recorded kind of error, if request `number` is to have this kind."""
        kind = self.kinds.get(number, "none")
        if number not in self.numbers:
            return "it was not recorded", None, kind
        if kind == expected:
            return "", None, kind
        alone = self.samples.errors.get(kind) == 1  # only the first message of a kind is kept
        example = f" ({self.samples.examples[kind]})" if alone else ""
        message = f"{ITS_KIND}{expected}, and it is recorded as {kind}{example}"
        return message, SWALLOWED if kind == "none" else None, kind


def measure(strategy: Strategy, workload: Workload, server: CountingServer, watch: Watch = lambda _: None) -> Evidence:
    """Measure one trial; the server forgets its warm-up. Raises TrialFailed, and what `watch` raises."""
    with tempfile.TemporaryDirectory() as folder:
        context = TrialContext(strategy, workload, server.url, folder, PeerAddress(server.port), CA_FILE)
        found = measurement.measure(context, on_start=server.reset, on_progress=lambda _: watch(Path(folder)))
    samples, numbers = found.samples, list(map(int, found.samples.numbers))
    errors = zip(numbers, samples.records["error"].tolist(), strict=True)
    kinds = {number: samples.kinds[code] for number, code in errors if code}
    client = client_spec(strategy.client)
    return Evidence(strategy, workload, server, found.outcome, samples, numbers, kinds, client)


def serve(
    strategy: Strategy, workload: Workload, answer: Respond, hold: float = 0.0, watch: Watch = lambda _: None
) -> Evidence:
    """Measure one trial against a server with these answers, over TLS if the client speaks HTTP/2."""
    with counting_server(answer, hold, [server_context(version="h2")] if speaks_http2(strategy) else []) as server:
        return measure(strategy, workload, server, watch)


def speaks_http2(strategy: Strategy) -> bool:
    """Return whether the strategy speaks HTTP/2 only, and therefore only over TLS."""
    return client_spec(strategy.client).http == "2"
