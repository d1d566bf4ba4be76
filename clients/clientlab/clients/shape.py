"""The two shapes of a client. Nothing else is asked of it: it does not measure, retry or count requests.

A client is made with a `Budget` and the function to call when it opened a connection that Python
cannot see (libraries in C or Rust); `open` gets it ready in the thread or loop that uses it.

Pinned equal for all: the pool, the time limits, no redirects followed, no retries, no decompression
asked for, no cookies sent back, TLS verified. `send` reads the whole body before it returns.

A client whose library can do more has more methods: see `Streaming` and `Timing`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

from clientlab.errors import ErrorTable
from clientlab.workload import DEFAULT_CHUNK_SIZE, Request

Reply = tuple[int, bytes]
"""Status and whole body. A plain tuple: anything richer costs as much as the recorder does."""


@dataclass(frozen=True)
class Budget:
    """What a client may spend: the same for every strategy.

    `connections`: at most this many to the upstream by this client (this process), all kept alive;
    0: no limit, for a library that has that; None: the library's own default. `timeout`: seconds for
    connecting, and for each wait for bytes. `ca_file`: path of a PEM file with the CA that signs the
    upstream's certificate; None: the CAs that the library trusts by itself. Certificate and host name are
    verified in either case. `chunk_size`: bytes to ask for at a time, of a body that is streamed.
    """

    connections: int | None
    timeout: float
    ca_file: str | None = None
    chunk_size: int = DEFAULT_CHUNK_SIZE


Opened = Callable[[], None]
"""Called by a client for each connection that its library opened out of Python's sight."""


Sink = Callable[[bytes], object]
"""Takes a body chunk by chunk; what it answers means nothing."""


class Client(Protocol):
    """A blocking client; `send` may be called by several threads at once."""

    errors: ClassVar[ErrorTable]

    def __init__(self, budget: Budget, opened: Opened) -> None: ...

    def open(self) -> None:
        """Get ready: build what is kept from request to request. Opens no connection."""

    def send(self, request: Request) -> Reply:
        """Send one request and read the whole answer; any of `errors` may be raised."""

    def close(self) -> None:
        """Close every connection still open."""


class AsyncClient(Protocol):
    """A client of asyncio; opened, used and closed in one running loop."""

    errors: ClassVar[ErrorTable]

    def __init__(self, budget: Budget, opened: Opened) -> None: ...

    async def open(self) -> None:
        """Get ready: build what is kept from request to request. Opens no connection."""

    async def send(self, request: Request) -> Reply:
        """Send one request and read the whole answer; any of `errors` may be raised."""

    async def close(self) -> None:
        """Close every connection still open."""


class Streaming(Protocol):
    """What a blocking client has besides, whose library can read a body without holding it whole.

    One whose library can't send an `Upload` with a length has ``streams_uploads = False``.
    """

    def stream(self, request: Request, sink: Sink) -> int:
        """Send one request, hand the whole body over in chunks and return the status; errors as of `send`."""


class AsyncStreaming(Protocol):
    """The same for asyncio. The sink is called, not awaited."""

    async def stream(self, request: Request, sink: Sink) -> int:
        """Send one request, hand the whole body over in chunks and return the status; errors as of `send`."""


class Timing(Protocol):
    """What a blocking client has besides, whose library measures each request itself."""

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        """`send`, and the library's own seconds: what they span is the library's affair."""


class AsyncTiming(Protocol):
    """The same for asyncio."""

    async def timed(self, request: Request) -> tuple[int, bytes, float]:
        """`send`, and the library's own seconds: what they span is the library's affair."""


class Telling(Protocol):
    """What a client of either shape has besides, whose library tells of its connections when it is asked."""

    def tell(self) -> None:
        """Call `opened` for each connection of which it was not called yet; asked whenever a worker is done."""
