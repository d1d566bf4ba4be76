"""A server that answers each line with as many bytes as its number: ``python -m benchmarks.link.server``.

With a file, which has a certificate and its key, it has TLS: by threads, since asyncio encrypts a body as a whole
before it sends any of it. It prints its port.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import ssl
import sys
import threading
from typing import cast

import uvloop

from clientlab.measuring.usage import raise_descriptor_limit

MOST = 10_000_000
_BODY = memoryview(bytes(MOST))


class Answering(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._unread = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._transport.write(_BODY[: int(line)])


async def _serve(listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answering, sock=listener, backlog=65_535)
    await server.serve_forever()


def _serve_tls(listener: socket.socket, context: ssl.SSLContext) -> None:
    listener.listen(100)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_answer, args=[connection, context], daemon=True).start()


def _answer(connection: socket.socket, context: ssl.SSLContext) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with context.wrap_socket(connection, server_side=True) as secured, secured.makefile("rb") as lines:
        for line in lines:
            secured.sendall(_BODY[: int(line)])


def main(host: str, certificate: str | None) -> None:
    """Serve until terminated."""
    raise_descriptor_limit()
    with socket.socket() as listener:
        listener.bind((host, 0))
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        if certificate is None:
            uvloop.run(_serve(listener))
        else:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            _serve_tls(listener, context)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("certificate", nargs="?")
    given = parser.parse_args()
    main(given.host, given.certificate)
