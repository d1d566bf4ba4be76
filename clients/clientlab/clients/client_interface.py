"""The interface of a client, the entry that declares one, and what several clients
share.

Imports no HTTP library.

A client says how one request is sent. It does not measure or count requests, and
retries only if the strategy's settings ask for it. These are equal for all clients: the
pool, the time limits, no redirects, no cookies, decompression only if the workload asks
for it, and TLS that is verified.
"""

from __future__ import annotations

import functools
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from clientlab.clients.retrying import Retry
from clientlab.errors import ErrorTable
from clientlab.workload.parts import DEFAULT_CHUNK_SIZE
from clientlab.workload.workload import Request

if TYPE_CHECKING:
    import ssl  # gevent has to patch it first

ClientKind = Literal[
    "blocking", "asyncio", "program"
]  # a program is a load generator that sends all requests itself
Policy = Literal[
    "pool", "per call", "per thread"
]  # who owns a connection, and for how long
EXTRA = "all"  # the extra of pyproject.toml that installs most libraries
IN_THREADS = ("threads", "thread-pool", "queue", "sync_to_async")
"""The executors of a client that exists once per thread.

Executors with a single thread would use it like the shared client.
"""

_Class = TypeVar("_Class", bound=type)


def _quirk(
    description: str, default: Any
) -> Any:  # `clientlab list clients` shows the description
    return field(default=default, metadata={"description": description})


@dataclass(frozen=True)
class Quirks:
    """Behaviour that differs from all other libraries and that the client cannot
    prevent.

    Conformance checks and tests permit exactly these. `resends_after` and `fault_kinds`
    name faults of `conformance`.
    """

    opens_ahead: bool = _quirk(
        "may open one more connection while a used one returns to its pool",
        default=False,
    )
    closes_after_head: bool = _quirk(
        "closes its connection after each HEAD", default=False
    )
    resends_after: tuple[str, ...] = _quirk(
        "sends the request again after the fault", default=()
    )
    fault_kinds: tuple[tuple[str, str], ...] = _quirk(
        "reports the fault as another kind of error", default=()
    )
    one_request_per_connection: bool = _quirk(
        "sends one request at a time per HTTP/2 connection", default=False
    )
    resumes_tls: bool = _quirk(
        "resumes a TLS session on its next connection", default=False
    )
    keep_alive_header: bool = _quirk(
        "sends `Connection: keep-alive`, 24 bytes more per request", default=False
    )
    uncounted: bool = _quirk(
        "hides its connections, which are unknown (–)", default=False
    )
    searches_pool: bool = _quirk(
        "searches its whole pool for each request: CPU time grows with `-c`",
        default=False,
    )
    own_chunk_size: int | None = _quirk(
        "ignores `chunk_size`; bytes of its largest chunk", default=None
    )
    late_in_bodies: float = _quirk(
        "seconds after the time limit until it notices silence in a body", default=0.0
    )


SEARCHES = Quirks(searches_pool=True)
OPENAI_FORMATS = ("openai-chat", "openai-responses")
SSE_FORMATS = ("sse", *OPENAI_FORMATS, "anthropic")
LLM_EXTRA = "llm"
LIBCURL_QUIRKS = Quirks(
    resends_after=("used connection closed", "used connection reset"),
    resumes_tls=True,
    own_chunk_size=16_384,
    late_in_bodies=8.0,  # libcurl measures the speed of a body over the last seconds
)


@dataclass(frozen=True)
class ClientSpec:
    """One library with one connection policy: the decorator that registers a client's
    class.

    `strategies` reads these entries from the source, and fills in `import_path` and
    `description`.
    """

    name: str
    distribution: str  # the run file stores its version; "python": the standard library
    policy: Policy
    _: KW_ONLY
    kind: ClientKind = "blocking"
    pairs: tuple[str, ...] = ()  # the executors that make a listed strategy with it
    # The only version that it speaks; "2": over TLS only.
    http: Literal["1.1", "2"] = "1.1"
    # HTTP/2: the most requests at once on a connection, if the library has a limit.
    streams: int | None = None
    # The executors that it runs with, that of its bare name first; empty: all of its
    # kind.
    only: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # further distributions
    extra: str = EXTRA  # the extra of pyproject.toml that installs it
    program: str = ""  # the program that it starts, if it is not a library
    package: str = ""  # the system package with the program
    unlimited: bool = False  # its pool can be without a limit
    native: bool = (
        False  # its library works outside the GIL: each thread can use a core
    )
    own_threads: bool = False  # its library starts threads itself
    formats: tuple[
        str, ...
    ] = ()  # it parses streams of these formats, and does nothing else; see `Client`
    url_only: bool = (
        False  # a user's function: it gets a URL, and no method, header, body or CA
    )
    own_retries: str = ""  # the key of `retrying.WAYS` for the retries of its library
    limits_calls: bool = False  # its library can limit the time of a whole request
    quirks: Quirks = Quirks()
    import_path: str = ""  # module:Class
    description: str = ""  # the first line of the class's docstring

    def __call__(self, cls: _Class) -> _Class:
        return cls

    @property
    def call_timeout_by(self) -> str:
        """Who keeps the time limit of a whole call. A thread cannot be cancelled."""
        if self.limits_calls:
            return "library"
        return "executor" if self.kind == "asyncio" else "nobody"


@dataclass(frozen=True)
class Budget:
    """The limits of a client, equal for every strategy.

    `connections`: the most connections of this client, all kept alive; 0: no limit, if
    the library can; None: the default of the library. `timeout`: seconds for
    connecting, and for each wait for bytes. `ca_file`: path of a PEM file with the CA
    of the upstream's certificate; None: the CAs that the library trusts. Certificate
    and host name are always verified. `chunk_size`: bytes to read at a time from a
    streamed body; None: whatever has arrived. `decode`: whether the client has to hand
    over compressed bodies decoded, in all codings that its library knows. `retry`: the
    retries that a strategy asks of the library. `call_timeout`: seconds for a whole
    request, if the library has to keep this limit.
    """

    connections: int | None
    timeout: float
    ca_file: str | None = None
    chunk_size: int | None = DEFAULT_CHUNK_SIZE
    decode: bool = False
    retry: Retry | None = None
    call_timeout: float | None = None


StatusAndBody = tuple[
    int, bytes
]  # plain and whole: a richer type would cost as much as the recorder
Opened = Callable[
    [], None
]  # called for each connection that a library opened without Python's sockets
EventSink = Callable[[Any], object]  # receives a parsed event, as bytes or str
Sink = Callable[
    [Any], object
]  # receives a body in chunks: bytes, or a memoryview from pyqwest


class ClientBase:
    """What blocking and asyncio clients share: their limits, and a table of their
    library's errors.

    An asyncio client derives from this class. It has the methods of `Client` as
    coroutines, and is opened, used and closed in one running loop. A user's client need
    not inherit.
    """

    errors: ClassVar[ErrorTable]

    def __init__(self, budget: Budget, opened: Opened) -> None:
        self._budget = budget
        self._opened = opened


class Client(ClientBase):
    """A blocking client. Several threads may call `send` at once.

    Four methods are optional, also in an asyncio client. ``stream(request, sink)``
    passes the body to `sink` in chunks and returns the status; a client whose library
    cannot send an `Upload` of known length has ``streams_uploads = False``.
    ``events(request, sink)`` passes on each event of a stream that the library has
    parsed; with ``hands_over_texts = True``, only its text. ``timed(request)`` is
    `send`, and also returns the seconds that the library measured. The class method
    ``import_library()`` imports what the module does not, because other clients of the
    module do not need it.
    """

    def open(self) -> None:
        """Make what is kept between requests, in the thread that sends them.

        Opens no connection.
        """

    def send(self, request: Request) -> StatusAndBody:
        """Send one request and read the whole response.

        Raises the exceptions in `errors`.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close every connection still open."""


class _ThreadClient(threading.local):
    """The client of a thread, and its `send`, bound once: a request pays for one
    look-up more than a shared client.
    """

    client: Any = None
    send: Callable[[Request], StatusAndBody] | None = None


class PerThread(Client):
    """One client of the class `shared` for each thread that sends, each with one
    connection.

    `open` makes as many as the budget has connections, before the first request is
    sent.
    """

    shared: ClassVar[type[Any]]

    def __init__(self, budget: Budget, opened: Opened) -> None:
        super().__init__(replace(budget, connections=1), opened)
        self._threads = budget.connections or 1
        self._all: list[Any] = []

    def open(self) -> None:
        self._free = [self._new_client() for _ in range(self._threads)]
        self._mine = _ThreadClient()

    def send(self, request: Request) -> StatusAndBody:
        send = self._mine.send or self.thread_client().send
        return send(request)

    def stream(self, request: Request, sink: Sink) -> int:
        return int(self.thread_client().stream(request, sink))

    def close(self) -> None:
        for client in self._all:
            client.close()

    def thread_client(self) -> Any:
        """Return the client of this thread.

        A thread beyond the budget gets a new one.
        """
        mine = self._mine
        if mine.client is None:
            try:
                mine.client = self._free.pop()
            except IndexError:
                mine.client = self._new_client()
            mine.send = mine.client.send
        return mine.client

    def _new_client(self) -> Any:
        client = self.shared(self._budget, self._opened)
        client.open()
        self._all.append(client)
        return client


class TimedPerThread(PerThread):
    """`PerThread` for a library that measures its requests itself."""

    def timed(self, request: Request) -> tuple[int, bytes, float]:
        return self.thread_client().timed(request)  # type: ignore[no-any-return]


def read_arriving(read1: Callable[..., bytes]) -> Iterator[bytes]:
    """Return the parts of a body as they arrive.

    With a size, urllib3's `read1` reports a body that is cut short.
    """
    return iter(functools.partial(read1, DEFAULT_CHUNK_SIZE, decode_content=True), b"")


def make_decoder(encoding: str | None) -> Callable[[bytes], bytes]:
    """Return a function that decodes a body, whole or in chunks, for a library that
    does not.

    `encoding`: the header Content-Encoding. Bodies in other codings than gzip and
    deflate are left as they are.
    """
    if encoding is None or encoding.lower() not in {"gzip", "deflate"}:
        return _leave
    detecting_format = zlib.MAX_WBITS | 32  # gzip's or zlib's
    return zlib.decompressobj(detecting_format).decompress


def _leave(body: bytes) -> bytes:
    return body


OTHERS = "# clientlab: the CAs from here on are those that libraries trust by default\n"
"""A line of the PEM files that testbeds write: the CA of the target is before it.

Readers of PEM skip it.
"""


def tls_context(
    budget: Budget,
    trust: str = "lab",
    make_default: Callable[[], ssl.SSLContext] | None = None,
) -> ssl.SSLContext | None:
    """Return a client's TLS context, or None without a CA: the library then makes its
    own context.

    It verifies certificate and host name, and trusts only the budget's CA. With
    ``trust=default`` it is the library's own context, which `make_default` returns, and
    trusts the target's CA too. ALPN offers HTTP/1.1; libraries that speak HTTP/2
    replace it.
    """
    import ssl  # noqa: PLC0415 - gevent has to patch it first

    if budget.ca_file is None:
        return None
    if trust == "default" and make_default is not None:
        context = make_default()
        context.load_verify_locations(cadata=_target_ca(budget.ca_file))
        return context
    context = ssl.create_default_context(cafile=budget.ca_file)
    context.set_alpn_protocols(["http/1.1"])
    return context


@functools.cache
def _target_ca(ca_file: str) -> str:
    """Return the PEM text of the target's CA alone.

    A file without the line holds no other CAs.
    """
    return Path(ca_file).read_text(encoding="utf-8").partition(OTHERS)[0]
