"""The lab service and a worker under attack: half requests and compressed bodies, from clients without a token.

The clients are a process of their own, ``python -m benchmarks.siege PORT BODIES HEADS BOMBS``. Each one holds its
connection as long as it can, and comes back a moment after it was dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import resource
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from statistics import median

_BOMB_BYTES = 1 << 30
"""Unpacked. Packed it is a megabyte."""

_BLOCK = bytes(1 << 20)
_PAUSE = 0.5
_CHECK_SECONDS = 0.05
_PATIENCE = 10.0

_FORM = "Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\n"
_JSON = "Content-Type: application/json\r\n"
_HALF_BODIES = (
    f"POST /api/results HTTP/1.1\r\nHost: localhost\r\n{_JSON}Content-Length: 100000\r\n\r\n" + '{"worker": ',
    f"POST /stop HTTP/1.1\r\nHost: localhost\r\n{_FORM}Content-Length: 100\r\n\r\nkey=",
    "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf",
)
_HALF_HEAD = "GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: "


@dataclass(frozen=True)
class Attackers:
    """How many clients there are of each kind. `bomb_bytes`: size of an unpacked body."""

    half_bodies: int = 300
    half_heads: int = 1000
    bombs: int = 200
    bomb_bytes: int = _BOMB_BYTES


@dataclass
class HealthChecks:
    """Seconds that each health check took."""

    seconds: list[float] = field(default_factory=list)

    @property
    def slowest(self) -> float:
        return max(self.seconds)

    @property
    def typical(self) -> float:
        return median(self.seconds)


@contextlib.contextmanager
def attacked(port: int, attackers: Attackers) -> Iterator[None]:
    """Attack a port of this machine meanwhile. Begins when all clients have connected once."""
    numbers = (port, attackers.half_bodies, attackers.half_heads, attackers.bombs, attackers.bomb_bytes)
    command = [sys.executable, "-m", "benchmarks.siege", *map(str, numbers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or not process.stdout.readline():
                raise RuntimeError(f"the attackers ended with code {process.wait()}")
            yield
        finally:
            process.kill()


def check_health(port: int, seconds: float) -> HealthChecks:
    """Check the health of what listens there again and again. Raises OSError where it does not answer."""
    found = HealthChecks()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            if answer.status != http.HTTPStatus.OK or not answer.read():
                raise OSError(f"the health check was answered {answer.status}")
        found.seconds.append(time.perf_counter() - began)
        time.sleep(_CHECK_SECONDS)
    return found


@cache
def _bomb(size: int) -> bytes:
    """A request with a compressed body of zeros, which is never held unpacked."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)  # gzip
    packed = b"".join([*(packer.compress(_BLOCK) for _ in range(size // len(_BLOCK))), packer.flush()])
    head = f"POST /api/results HTTP/1.1\r\nHost: localhost\r\n{_JSON}Content-Encoding: gzip\r\n"
    return f"{head}Content-Length: {len(packed)}\r\n\r\n".encode() + packed


async def _attack(port: int, request: bytes, connected: asyncio.Semaphore) -> None:
    """One client: hold a connection until it is dropped, then open the next."""
    first = True
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            if first:
                connected.release()
                first = False
            try:
                writer.write(request)
                while await reader.read(1 << 16):
                    continue
            finally:
                writer.close()
        await asyncio.sleep(_PAUSE)


async def _siege(port: int, attackers: Attackers) -> None:
    connected = asyncio.Semaphore(0)
    halves = [_HALF_BODIES[number % len(_HALF_BODIES)].encode() for number in range(attackers.half_bodies)]
    heads = [_HALF_HEAD.encode()] * attackers.half_heads
    bombs = [_bomb(attackers.bomb_bytes)] * attackers.bombs
    requests = [*halves, *heads, *bombs]
    async with asyncio.TaskGroup() as group:
        for request in requests:
            group.create_task(_attack(port, request, connected))
        for _ in requests:
            await connected.acquire()
        print("all have connected", flush=True)


def main(words: list[str]) -> None:
    """Attack until this process is killed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    port, *numbers = map(int, words)
    asyncio.run(_siege(port, Attackers(*numbers)))


if __name__ == "__main__":
    main(sys.argv[1:])
