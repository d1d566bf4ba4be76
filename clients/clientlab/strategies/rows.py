"""What a row of the lists of clients and of executors says. A row names its class; it imports no library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["blocking", "asyncio"]


@dataclass(frozen=True)
class ClientRow:
    """One library with one policy of who owns the connection and for how long."""

    name: str
    place: str  # module:class
    kind: Kind
    distribution: str  # whose version the run notes
    policy: Literal["per call", "pool", "per thread"]
    says: str
    http: Literal["1.1", "2"] = "1.1"  # the version it speaks, and no other; "2" over TLS only


@dataclass(frozen=True)
class ExecutorRow:
    """One way of running many. `needs` is the kind of client that it runs."""

    name: str
    place: str
    needs: Kind
    says: str
    counted: bool = False  # starts all at once, so it needs a number of requests
    many: bool = True  # has more than one request in flight
    unbounded: bool = False  # has all of them in flight, whatever is asked
