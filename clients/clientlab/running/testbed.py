"""The interface of a testbed: the servers that trials run against, and their counters."""

from __future__ import annotations

from typing import Protocol

from clientlab.measuring.connections import PeerAddress
from clientlab.results.server_counters import ServerCounters
from clientlab.workload.workload import Workload


class Testbed(Protocol):
    """The servers that a trial runs against. Upstream and route are the names that the experiment has for them."""

    def serve(self, upstream: str) -> None:
        """Start that upstream unless it is running. Raises IncompleteRun where it does not start.

        Raises ServerLost where a server that the lab did not start does not answer.
        """

    def base_url(self, upstream: str, route: str) -> str:
        """Scheme, host and port."""

    def address(self, upstream: str, route: str) -> PeerAddress:
        """Which connections are connections to it."""

    def ca_file(self, upstream: str, route: str) -> str | None:
        """The PEM file of the CA that clients have to trust; None for each library's own trust store."""

    def reading(self, upstream: str, route: str) -> ServerCounters:
        """The counters now. Raises ServerLost where a server has ended or does not answer."""

    def draw_faults(self, seed: int | None) -> None:
        """Make the link's faults from now on, as this seed draws them; None: make none. Raises ServerLost."""

    def check(self) -> None:
        """Raises ServerLost where a server of this machine has ended, or is frozen."""

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:
        """Why a health check of that upstream by that route fails now; None where it is answered."""
