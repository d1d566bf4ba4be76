"""The two interfaces of a client, blocking and asyncio. A client does not measure, retry or count requests.

Its arguments are a `Budget` and a callback for connections that Python cannot see (libraries in C or Rust).
`open` is called in the thread or event loop that uses the client.

Equal for all clients: the pool, the time limits, no redirects, no retries, no decompression, no cookies, TLS
verified. `send` reads the whole body before it returns.

Optional methods: see `Streaming` and `Timing`.
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
    """A blocking client. Several threads may call `send` at once."""

    errors: ClassVar[ErrorTable]

    def __init__(self, budget: Budget, opened: Opened) -> None: ...

    def open(self) -> None:
        """Make what is kept from request to request. Opens no connection."""

    def send(self, request: Request) -> StatusAndBody:
        """Send one request and read the whole response. Raises the exceptions in `errors`."""

    def close(self) -> None:
        """Close every connection still open."""


class AsyncClient(Protocol):
    """An asyncio client, opened, used and closed in one running loop."""

    errors: ClassVar[ErrorTable]

    def __init__(self, budget: Budget, opened: Opened) -> None: ...

    async def open(self) -> None:
        """Make what is kept from request to request. Opens no connection."""

    async def send(self, request: Request) -> StatusAndBody:
        """Send one request and read the whole response. Raises the exceptions in `errors`."""

    async def close(self) -> None:
        """Close every connection still open."""


class Streaming(Protocol):
    """Optional for a blocking client: the library can read a body in chunks.

    A client whose library cannot send an `Upload` of known length has ``streams_uploads = False``.
    """

    def stream(self, request: Request, sink: Sink) -> int:
        """Send one request, pass the body to `sink` in chunks, return the status. Raises the same errors as `send`."""


class AsyncStreaming(Protocol):
    """`Streaming` for asyncio. The sink is called, not awaited."""

    async def stream(self, request: Request, sink: Sink) -> int:
        """Send one request, pass the body to `sink` in chunks, return the status. Raises the same errors as `send`."""


class Timing(Protocol):
    """Optional for a blocking client: the library measures each request itself."""

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        """`send`, and the seconds that the library measured. Libraries differ in the span that they measure."""


class AsyncTiming(Protocol):
    """`Timing` for asyncio."""

    async def timed(self, request: Request) -> tuple[int, bytes, float]:
        """`send`, and the seconds that the library measured. Libraries differ in the span that they measure."""
