"""What a row of the lists of clients and of executors says. A row names its class; it imports no library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["blocking", "asyncio", "program"]
"""Of a client: what calls it. A program sends by itself: it drives an upstream, and is no library to choose."""
Policy = Literal["per call", "pool", "per thread"]


@dataclass(frozen=True)
class ClientRow:
    """One library with one policy of who owns the connection and for how long."""

    name: str
    place: str  # module:class
    kind: Kind
    distribution: str  # whose version the run notes; "python" for the standard library
    policy: Policy
    says: str
    http: Literal["1.1", "2"] = "1.1"  # the version it speaks, and no other; "2" over TLS only
    needs: tuple[str, ...] = ()  # distributions beside its own
    extra: str = "clients"  # of pyproject.toml, that installs it
    program: str = ""  # that it starts, where it is no library
    package: str = ""  # of the system, that installs the program
    unlimited: bool = False  # its pool can be told to have no limit


@dataclass(frozen=True)
class ExecutorRow:
    """One way of running many. `needs` is the kind of client that it runs.

    `size` names the setting that says how many are in flight, where the strategy says it and not ``-c``.
    """

    name: str
    place: str
    needs: Kind
    says: str
    counted: bool = False  # starts all at once, so it needs a number of requests
    many: bool = True  # has more than one request in flight
    unbounded: bool = False  # has all of them in flight, whatever is asked
    pool_bound: bool = False  # the client's pool is all that bounds it
    size: str = ""
    only: tuple[str, ...] = ()  # the clients that it goes with; all of its kind where none is named
    policy: Policy | None = None  # of connections, where it is not the client's
    sends: bool = False  # by itself, with the client's handles: bodies whole, and nothing but the lab's own time
    distribution: str = "python"  # that it needs, and whose version the run notes
