"""The bytes that each client sends, read from a plain socket: the same headers with the
same values from all.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clientlab.clients.apache_bench import ApacheBench
from clientlab.clients.client_interface import Budget
from clientlab.strategies import CLIENTS
from clientlab.workload.workload import Request
from clients.one_client import one_client, request_to
from optional_programs import REQUIRED

pytestmark = pytest.mark.real

LIBRARIES = [
    name for name, spec in CLIENTS.items() if spec.http == "1.1" and not spec.program
]


@dataclass(frozen=True)
class Kind:
    """The fields of a workload, and what must arrive besides the headers of every
    request.
    """

    fields: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    target: str = "/"


def typed(kind: str, length: int) -> dict[str, str]:
    return {"content-type": kind, "content-length": str(length)}


BYTES = "application/octet-stream"
EMPTY = {"content-length": "0"}
CSV = {"Content-Type": "text/csv"}
RECORDED = {"method": "POST", "path": "/r?", "body": "x"}
ESCAPES = "/%7E%2fa'[1]?b=%2F%3a&c='%41%27?"

KINDS = {
    "GET": Kind({}),
    "HEAD": Kind({"method": "HEAD"}),
    "POST": Kind({"method": "POST"}, EMPTY),
    "POST, empty body": Kind({"method": "POST", "body": ""}, EMPTY),
    "POST, body": Kind({"method": "POST", "body": "a=1"}, typed(BYTES, 3), b"a=1"),
    "POST, body and type": Kind(
        {"method": "POST", "body": "a,b", "headers": CSV}, typed("text/csv", 3), b"a,b"
    ),
    "POST, not text": Kind(
        {"method": "POST", "body_base64": "/w0K"}, typed(BYTES, 3), b"\xff\r\n"
    ),
    "POST, payload": Kind(
        {"method": "POST", "payload_size": 0},
        typed("application/json", 12),
        b'{"data": ""}',
    ),
    "PUT, body": Kind({"method": "PUT", "body": "x"}, typed(BYTES, 1), b"x"),
    "PUT": Kind({"method": "PUT"}, EMPTY),
    "DELETE": Kind({"method": "DELETE"}, EMPTY),
    "OPTIONS": Kind({"method": "OPTIONS"}, EMPTY),
    "recorded": Kind({"replay": RECORDED}, typed(BYTES, 1), b"x", "/r"),
    "escapes": Kind({"path": ESCAPES}, target="/~%2Fa%27%5B1%5D?b=%2F%3A&c=%27A%27?"),
    "empty value": Kind({"headers": {"X-Empty": ""}}, {"x-empty": ""}),
    "blanks": Kind({"headers": {"X-Blanks": " a b\t"}}, {"x-blanks": "a b"}),
    "connection": Kind({"headers": {"Connection": "close"}}, {"connection": "close"}),
}


def read_request(stream) -> tuple[str, str, bytes, Counter] | None:
    """Return method, target, body and headers of the next request; None at the end of
    the connection.
    """
    words = stream.readline().decode("latin-1").split()
    if not words:
        return None
    headers = Counter()
    length = 0
    while line := stream.readline().decode("latin-1").rstrip("\r\n"):
        name, _, value = line.partition(":")
        headers[name.lower(), value.removeprefix(" ")] += 1
        if name.lower() == "content-length":
            length = int(value)
    return words[0], words[1], stream.read(length), headers


@contextlib.contextmanager
def capturing() -> Iterator[tuple[str, list]]:
    """Yield the URL of a server, and the requests that it receives.

    Each answer sets a cookie.
    """
    seen: list = []

    def answer(connection: socket.socket) -> None:
        with (
            contextlib.suppress(ConnectionError),
            connection,
            connection.makefile("rb") as stream,
        ):
            while (request := read_request(stream)) is not None:
                seen.append(request)
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nConnection: keep-alive\r\n"
                    b"Content-Length: 0\r\n\r\n"
                )

    def accept() -> None:
        with contextlib.suppress(OSError):  # shut down below
            while True:
                connection, _ = listener.accept()
                thread = threading.Thread(
                    target=answer, args=(connection,), daemon=True
                )
                thread.start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def requests_to(url: str, folder: Path) -> Iterator[tuple[str, Request]]:
    """Yield each kind of request, as the lab makes it for all clients."""
    for name, kind in KINDS.items():
        fields = kind.fields
        if "replay" in fields:
            path = folder / "requests.jsonl"
            path.write_text(json.dumps(fields["replay"]), "utf-8")
            fields = {"replay": str(path)}
        yield name, request_to(url, **fields)


def expected(kind: Kind, client: str, url: str) -> tuple[str, str, bytes, Counter]:
    """Return the request that must arrive: the same from all clients, except for
    declared quirks.
    """
    headers = {name.lower(): value for name, value in request_to(url).headers.items()}
    headers["host"] = url.removeprefix("http://")
    if CLIENTS[client].quirks.keep_alive_header:
        headers["connection"] = "Keep-Alive" if client == "ab" else "keep-alive"
    headers |= kind.headers
    method = kind.fields.get("replay", kind.fields).get("method", "GET")
    return method, kind.target, kind.body, Counter(headers.items())


@pytest.mark.parametrize("client", LIBRARIES)
def test_every_library_sends_the_same_headers(client, tmp_path):
    """No cookie of an earlier answer comes back."""
    differences = {}
    with capturing() as (url, seen), one_client(client) as opened:
        for name, request in requests_to(url, tmp_path):
            seen.clear()
            assert opened.send(request) == (200, b"")
            if seen != [expected(KINDS[name], client, url)]:
                differences[name] = list(seen)
    assert differences == {}


@pytest.mark.skipif(
    shutil.which("ab") is None and not REQUIRED,
    reason="ab is not installed: apt-get install apache2-utils",
)
def test_ab_sends_the_same_headers(tmp_path):
    """Its option `-k` decides about the connection, whatever the headers say."""
    differences = {}
    ab = ApacheBench(Budget(1, 10.0), lambda: None)
    with capturing() as (url, seen):
        for name, request in requests_to(url, tmp_path):
            seen.clear()
            command = ab.command(request, 1, 1, tmp_path)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            if name != "connection" and seen != [expected(KINDS[name], "ab", url)]:
                differences[name] = list(seen)
    assert differences == {}
