"""Clients and a server with a known bottleneck.

As a program, this file is the server: it prints its port.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time

from clientlab.clients.client_interface import Budget, Opened, StatusAndBody
from clientlab.clients.http_client import HttpClient
from clientlab.workload.workload import Request

_HASHED = bytes(1_300_000)  # about a millisecond of SHA-1


class Locked(HttpClient):
    """Has a connection per thread, and one lock for all threads."""

    policy = "per thread"

    def __init__(self, budget: Budget, opened: Opened) -> None:
        super().__init__(budget, opened)
        self._lock = threading.Lock()

    def send(self, request: Request) -> StatusAndBody:
        with self._lock:
            return super().send(request)


class Native(HttpClient):
    """Spends CPU time outside the GIL on each request, as a library in C does."""

    policy = "per thread"
    native = True

    def send(self, request: Request) -> StatusAndBody:
        reply = super().send(request)
        hashlib.sha1(_HASHED, usedforsecurity=False).digest()
        return reply


class Stalled(HttpClient):
    """Waits 40 ms before each request for something that the lab cannot see, as Nagle's
    algorithm or DNS.
    """

    policy = "per thread"

    def send(self, request: Request) -> StatusAndBody:
        time.sleep(0.04)
        return super().send(request)


async def _serve() -> None:
    """Spend two milliseconds of CPU time on each request.

    The lab reads no counters from this server.
    """

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while await reader.readline():
            while await reader.readline() != b"\r\n":
                pass
            until = time.process_time() + 0.002
            while time.process_time() < until:
                pass
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
