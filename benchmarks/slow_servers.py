"""Small servers that let requests wait. Each prints its port.

``python -m benchmarks.slow_servers PLACES TIMES SECONDS [LONG]`` serves PLACES requests
at once, and the others wait for a place. TIMES is how long a request takes there:
`constant`; `hangs`, where every 100th takes LONG seconds; or `lognormal`, with SECONDS
as the median.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import random
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from statistics import NormalDist

HANGS_EVERY = 100
QUANTILES = 100
REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def draw_times(name: str, seconds: float, long: float = 0.0) -> Iterator[float]:
    """Yield the seconds that each request takes, without end."""
    if name == "constant":
        return itertools.repeat(seconds)
    if name == "hangs":
        return itertools.cycle([long, *[seconds] * (HANGS_EVERY - 1)])
    return draw_lognormal(seconds)


def draw_lognormal(median: float) -> Iterator[float]:
    """Yield lognormal times with sigma 1.

    The same hundred quantiles are shuffled again and again. So a few hundred requests
    have nearly the mean of all, and two rates do not differ because of their draws.
    """
    order = random.Random(1)  # noqa: S311 - not a secret
    normal = NormalDist()
    shares = [(place + 0.5) / QUANTILES for place in range(QUANTILES)]
    deck = [median * math.exp(normal.inv_cdf(share)) for share in shares]
    while True:
        order.shuffle(deck)
        yield from deck


async def serve(places: int, times: Iterator[float]) -> None:
    """Serve at a random port, until the process is stopped."""
    free = asyncio.Semaphore(places)

    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                async with free:
                    await asyncio.sleep(next(times))
                writer.write(REPLY)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    most, kind, *numbers = sys.argv[1:]
    asyncio.run(serve(int(most), draw_times(kind, *map(float, numbers))))
