"""An independent server for HTTP/1.1, HTTP/2 and TLS, with faults.

It shares no code with the lab, and records each request as it arrives. Answers are the
raw bytes of HTTP/1.1; over HTTP/2 they are sent as frames.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import ssl
import struct
import threading
import time
from asyncio import StreamReader, StreamWriter
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset

# Valid until 2120. The keys of the CAs were deleted.
_CERTIFICATES = Path(__file__).with_name("certificates")
CA_FILE = str(_CERTIFICATES / "ca.pem")
SOUND = "server"
OTHER_NAME = "other-name"
OTHER_CA = "other-ca"  # which no client trusts
# Seconds that the server waits for a client to give up a stalled answer.
PATIENCE = 10.0


class Last(bytes):
    """An answer after which the server closes the connection.

    Over HTTP/2, an incomplete one resets the stream.
    """


class Reset(Last):
    """An answer after which the server resets the connection (RST)."""


class Stall(Last):
    """The start of an answer.

    Nothing follows until the client gives up, or for `PATIENCE`.
    """


@dataclass(frozen=True)
class Paced:
    """Blocks of an answer with pauses between them (HTTP/1.1 only).

    Each is made when it is sent.
    """

    blocks: Sequence[Callable[[], bytes]]
    pause: float  # seconds
    closes: bool = False


@dataclass
class Seen:
    """One request, as received. `connection`: the number of its connection, from 1."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    version: str
    connection: int


ServerAnswer = bytes | Iterator[bytes] | Paced | None
"""The bytes to send.

An iterator is sent block by block (HTTP/1.1 only). None closes the connection.
"""

Respond = Callable[[Seen], ServerAnswer]


def ok(body: bytes = b'{"ok": true}', status: str = "200 OK") -> bytes:
    """Return a whole answer after which the connection stays open.

    No client may send its cookie back.
    """
    head = (
        f"HTTP/1.1 {status}\r\n"
        "Content-Type: application/json\r\n"
        "Set-Cookie: lab=1; Path=/\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def server_context(
    certificate: str = SOUND, version: str = "http/1.1"
) -> ssl.SSLContext:
    """Return the TLS context of a server that speaks ``http/1.1`` or ``h2``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_CERTIFICATES / f"{certificate}.pem")
    context.set_alpn_protocols([version])
    return context


@dataclass
class CountingServer:
    """What a server has received so far.

    It holds each request for `hold` seconds, and then asks `respond`.

    `accepted` counts all connections, `connections` those on which the client sent
    something; `spoken_to` has their TLS contexts. `in_flight`: unanswered requests.
    `let_go`: seconds until the client gave up a stalled answer, by target.
    """

    scheme: str
    port: int
    respond: Respond = lambda _: ok()
    hold: float = 0.0
    connections: int = 0
    accepted: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    seen: list[Seen] = field(default_factory=list)
    let_go: dict[str, float] = field(default_factory=dict)
    spoken_to: set[ssl.SSLContext | None] = field(default_factory=set)
    # `respond` may block.
    _threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1000)
    )

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def reset(self) -> None:
        """Forget the requests and connections so far, except for requests in flight."""
        self.connections = self.accepted = self.most_in_flight = 0
        self.seen = []
        self.let_go = {}

    async def serve(
        self, connection: socket.socket, context: ssl.SSLContext | None
    ) -> None:
        self.accepted += 1
        loop = asyncio.get_running_loop()
        reader = StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        # The client may close the connection, or its handshake fail.
        with contextlib.suppress(OSError, EOFError):
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol, connection, ssl=context
            )
            writer = StreamWriter(transport, protocol, reader, loop)
            try:
                first = await reader.readexactly(1)
                self.spoken_to.add(context)
                self.connections += 1
                tls = writer.get_extra_info("ssl_object")
                is_http2 = tls is not None and tls.selected_alpn_protocol() == "h2"
                serve = self._serve_http2 if is_http2 else self._serve_http1
                await serve(first, reader, writer, self.connections)
            except asyncio.CancelledError:
                # Unsent bytes would keep it open beyond the end of the loop.
                transport.abort()
                raise
            finally:
                writer.close()

    async def _answer(self, seen: Seen) -> ServerAnswer:
        self.seen.append(seen)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(self.hold)  # the server's work, not a wait for a condition
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(self._threads, self.respond, seen)
        # The client may send its next request as soon as the answer is sent.
        self.in_flight -= 1
        return answer

    async def _serve_http1(
        self, first: bytes, reader: StreamReader, writer: StreamWriter, number: int
    ) -> None:
        while True:  # until the client closes the connection, which raises EOFError
            seen = await _read_request(first, reader, number)
            first = b""
            began = time.monotonic()
            answer = await self._answer(seen)
            if isinstance(answer, Paced):
                for make in answer.blocks:
                    writer.write(make())
                    await writer.drain()
                    await asyncio.sleep(answer.pause)  # the pace of the stream
                if answer.closes:
                    return
                continue
            blocks = answer if isinstance(answer, Iterator) else [answer or b""]
            for block in blocks:
                writer.write(block)
                await writer.drain()
            if isinstance(answer, Stall):
                with contextlib.suppress(OSError):  # a reset, or no patience is left
                    await asyncio.wait_for(reader.read(), PATIENCE)
                self.let_go[seen.target] = time.monotonic() - began
            if isinstance(answer, Reset):
                linger = struct.pack("ii", 1, 0)
                connection = writer.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            if isinstance(answer, Last) or not isinstance(answer, bytes):
                return

    async def _serve_http2(
        self, first: bytes, reader: StreamReader, writer: StreamWriter, number: int
    ) -> None:
        config = H2Configuration(client_side=False, header_encoding="utf-8")
        http2 = H2Connection(config)
        http2.initiate_connection()
        requests: dict[int, Seen] = {}
        given_up: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)
        tasks = []
        try:
            while block := first + await reader.read(1 << 16):
                first = b""
                for event in http2.receive_data(block):
                    stream = getattr(event, "stream_id", 0)
                    if isinstance(event, RequestReceived):
                        requests[stream] = _make_seen(event, number)
                    elif isinstance(event, DataReceived):
                        requests[stream].body += event.data
                        size = event.flow_controlled_length
                        http2.acknowledge_received_data(size, stream)
                    elif isinstance(event, StreamEnded):
                        seen = requests.pop(stream)
                        answering = self._answer_http2(
                            stream, seen, given_up[stream], http2, writer
                        )
                        tasks.append(asyncio.create_task(answering))
                    elif isinstance(event, StreamReset):
                        given_up[stream].set()
                writer.write(http2.data_to_send())
        finally:
            for is_given_up in given_up.values():
                is_given_up.set()

    async def _answer_http2(
        self,
        stream: int,
        seen: Seen,
        given_up: asyncio.Event,
        http2: H2Connection,
        writer: StreamWriter,
    ) -> None:
        """Answer a request over HTTP/2.

        `given_up`: the client has reset the stream or closed the connection.
        """
        began = time.monotonic()
        answer = await self._answer(seen)
        if not isinstance(answer, bytes) or isinstance(answer, Reset):
            writer.close()
        elif not given_up.is_set():
            _send_frames(answer, stream, seen.method, http2)
            writer.write(http2.data_to_send())
        if isinstance(answer, Stall):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(given_up.wait(), PATIENCE)
            self.let_go[seen.target] = time.monotonic() - began
            if not given_up.is_set():
                writer.close()


def _make_seen(request: RequestReceived, connection: int) -> Seen:
    headers = {str(name): str(value) for name, value in request.headers}
    method = headers.pop(":method")
    target = headers.pop(":path")
    headers["host"] = headers.pop(":authority")
    del headers[":scheme"]
    return Seen(method, target, headers, b"", "HTTP/2", connection)


def _send_frames(answer: bytes, stream: int, method: str, http2: H2Connection) -> None:
    """Send an answer as frames. Its body must fit into the client's window (64 KiB)."""
    head, complete, body = answer.partition(b"\r\n\r\n")
    if not complete:
        return
    status, *lines = head.decode("latin-1").split("\r\n")
    kept = [line for line in lines if not line.startswith("Connection")]
    headers = dict(line.split(": ", 1) for line in kept)
    if headers.pop("Transfer-Encoding", None):
        whole = body.endswith(b"0\r\n\r\n")
        body = b"".join(body.split(b"\r\n")[1::2])
    else:
        whole = method == "HEAD" or len(body) == int(headers["Content-Length"])
    http2.send_headers(stream, [(":status", status.split()[1]), *headers.items()])
    size = http2.max_outbound_frame_size
    for at in range(0, len(body), size):
        http2.send_data(stream, body[at : at + size])
    if whole:
        http2.end_stream(stream)
    elif not isinstance(answer, Stall):
        http2.reset_stream(stream, ErrorCodes.INTERNAL_ERROR)


async def _read_request(first: bytes, reader: StreamReader, connection: int) -> Seen:
    """Read a request after its first byte.

    Raise EOFError if the client has closed the connection.
    """
    head = first + await reader.readuntil(b"\r\n\r\n")
    start, *lines = head.decode("latin-1").strip().split("\r\n")
    values = defaultdict[str, list[str]](list)
    for line in lines:
        name, value = line.split(":", 1)
        values[name.lower()].append(value.strip())
    headers = {name: ", ".join(parts) for name, parts in values.items()}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    method, target, version = start.split()
    return Seen(method, target, headers, body, version, connection)


@contextlib.contextmanager
def counting_server(
    answer: Respond = lambda _: ok(),
    hold: float = 0.0,
    tls: Sequence[ssl.SSLContext] = (),
) -> Iterator[CountingServer]:
    """Run a server on a free port of loopback.

    With `tls`, its connections use these contexts in turn.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        listener.setblocking(False)
        scheme = "https" if tls else "http"
        server = CountingServer(scheme, listener.getsockname()[1], answer, hold)

        async def accept() -> None:
            loop = asyncio.get_running_loop()
            tasks = []
            with contextlib.suppress(OSError):  # shut down below
                for context in itertools.cycle(tls or [None]):
                    connection, _ = await loop.sock_accept(listener)
                    tasks.append(loop.create_task(server.serve(connection, context)))

        thread = threading.Thread(target=lambda: asyncio.run(accept()), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
