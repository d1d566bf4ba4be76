"""The interface of a testbed: the servers that trials run against, and their counters."""

from __future__ import annotations

from typing import Protocol

from clientlab.measuring.connections import PeerAddress
from clientlab.results.server_counters import ServerCounters
from clientlab.workload.workload import Workload


class Testbed(Protocol):
    """The servers that a trial runs against. Upstream and route are the names that the experiment has for them."""

    def serve(self, upstream: str) -> None:
        """Start that upstream unless it runs. Raise IncompleteRun, or ServerLost if somebody else starts it."""

    def base_url(self, upstream: str, route: str) -> str:
        """Return scheme, host and port."""

    def address(self, upstream: str, route: str) -> PeerAddress:
        """Return which connections are connections to it."""

    def ca_file(self, upstream: str, route: str) -> str | None:
        """Return the PEM file of the CA that clients have to trust, or None for each library's own trust store."""

    def reading(self, upstream: str, route: str) -> ServerCounters:
        """Return the counters now. Raise ServerLost if a server has ended or does not answer."""

    def check(self) -> None:
        """Raise ServerLost if a server of this machine has ended, or is frozen."""

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:
        """Return why a health check of that upstream by that route fails now, or None if it is answered."""
