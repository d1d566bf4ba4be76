"""A testbed whose only upstream is the counting server."""

from __future__ import annotations

from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.trial.context import PeerAddress
from clientlab.workload.workload import Workload


class FakeTestbed:
    """A testbed whose upstream is the counting server; its counters are
    read off that.
    """

    def __init__(self, server) -> None:
        self.server = server

    def serve(self, upstream: str) -> None:
        """It runs."""

    def address(self, upstream: str, route: str) -> PeerAddress:  # noqa: ARG002
        return PeerAddress(self.server.url)

    def check(self) -> None:
        """The server lives."""

    def trouble(self, upstream: str, route: str, workload: Workload) -> None:
        """It answers."""

    def reading(self, upstream: str, route: str) -> ServerCounters:  # noqa: ARG002
        use = ServerUse(
            cpu_seconds=0.0,
            requests=len(self.server.seen),
            connections=self.server.connections,
        )
        return ServerCounters(upstream=use)
