"""The two interfaces of a client, blocking and asyncio. A client does not measure, retry or count requests.

`open` is called in the thread or event loop that uses the client. `send` reads the whole body before it returns.

Equal for all clients: the pool, the time limits, no redirects, no retries, no decompression, no cookies, TLS verified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from clientlab.errors import ErrorTable
from clientlab.workload.workload import DEFAULT_CHUNK_SIZE, Request

StatusAndBody = tuple[int, bytes]
"""Status and whole body. A plain tuple: a richer type would cost as much as the recorder."""


@dataclass(frozen=True)
class Budget:
    """The limits of a client, equal for every strategy.

    `connections`: the most connections of this client, all kept alive; 0: no limit, if the library can; None: the
    default of the library. `timeout`: seconds for connecting, and for each wait for bytes. `ca_file`: path of a PEM
    file with the CA of the upstream's certificate; None: the CAs that the library trusts. Certificate and host name
    are always verified. `chunk_size`: bytes to read at a time from a streamed body.
    """

    connections: int | None
    timeout: float
    ca_file: str | None = None
    chunk_size: int = DEFAULT_CHUNK_SIZE


Opened = Callable[[], None]
"""The client calls it for each connection that its library opened without Python's sockets."""

Sink = Callable[[bytes], object]
"""Receives a body chunk by chunk. Its return value is ignored."""


class Client(Protocol):
    """A blocking client. Several threads may call `send` at once.

    Two methods are optional, also in an `AsyncClient`. ``stream(request, sink)`` passes the body to `sink` in chunks
    and returns the status; a client whose library cannot send an `Upload` of known length has ``streams_uploads =
    False``. ``timed(request)`` is `send`, and returns also the seconds that the library measured.
    """

    errors: ClassVar[ErrorTable]

    def __init__(self, budget: Budget, opened: Opened) -> None: ...

    def open(self) -> None:
        """Make what is kept from request to request. Opens no connection."""

    def send(self, request: Request) -> StatusAndBody:
        """Send one request and read the whole response. Raises the exceptions in `errors`."""

    def close(self) -> None:
        """Close every connection still open."""


class NothingKept:
    """`open` and `close` of a client that keeps nothing from request to request."""

    def open(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class AsyncClient(Protocol):
    """An asyncio client, opened, used and closed in one running loop."""

    errors: ClassVar[ErrorTable]

    def __init__(self, budget: Budget, opened: Opened) -> None: ...

    async def open(self) -> None: ...

    async def send(self, request: Request) -> StatusAndBody: ...

    async def close(self) -> None: ...
