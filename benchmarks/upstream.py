"""The mock server: its throughput compared with a bare aiohttp handler, and how exact
its delays are.

Both servers run under gunicorn with one worker, and take turns to answer.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

from aiohttp import web

from benchmarks.bare_loops import CONCURRENCY, bare_loop
from benchmarks.figures import BenchmarkRow, ratio
from clientlab.machine import child_processes

REQUESTS = 3000
BODY = b'{"message": "hello"}\n'
DELAYS = (0.001, 0.02, 0.1)
_DELAYED = 50
MOST_LATE = 0.002
"""Seconds by which the median request may be late, including the time of client and
kernel.
"""


async def application() -> web.Application:
    """Return the bare server, for gunicorn."""

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=BODY, content_type="application/json")

    app = web.Application()
    app.router.add_get("/", answer)
    return app


def rows(rounds: int) -> Iterator[BenchmarkRow]:
    """Yield the ratio of times, and the lateness of each delay."""
    bare = [
        "-w",
        "1",
        "-k",
        "aiohttp.GunicornWebWorker",
        "benchmarks.upstream:application",
    ]
    settings = {"MOCKUPSTREAM_FRAMEWORK": "aiohttp", "MOCKUPSTREAM_WORKERS": "1"}
    with (
        _serve(["-c", "python:mockupstream.gunicorn_config"], settings) as ours,
        _serve(bare, {}) as other,
    ):
        ratios = []
        for number in range(rounds):
            order = [other, ours] if number % 2 else [ours, other]
            took = {port: _seconds_of_requests(port) for port in order}
            ratios.append(took[ours] / took[other])
        yield ratio(
            "aiohttp upstream over a bare handler, seconds of requests,"
            f" c={CONCURRENCY}",
            ratios,
        )
        for delay in DELAYS:
            late = sorted(1e3 * one for one in _lateness(ours, delay))
            value, name = (
                median(late),
                f"lateness of a delay of {1e3 * delay:g} ms, one by one",
            )
            limit = f"<= {1e3 * MOST_LATE:g}"
            met, spread = value <= 1e3 * MOST_LATE, f"range of {len(late)}"
            yield BenchmarkRow(name, value, late[0], late[-1], spread, limit, met, "ms")


def _seconds_of_requests(port: int) -> float:
    with bare_loop("aiohttp@workers", f"http://127.0.0.1:{port}/", None) as run:
        run(CONCURRENCY)
        began = time.perf_counter()
        run(REQUESTS)
        return time.perf_counter() - began


def _lateness(port: int, delay: float) -> Iterator[float]:
    with contextlib.closing(HTTPConnection("127.0.0.1", port)) as connection:
        for _ in range(_DELAYED):
            began = time.perf_counter()
            connection.request("GET", f"/?delay={delay}")
            connection.getresponse().read()
            yield time.perf_counter() - began - delay


@contextlib.contextmanager
def _serve(words: list[str], settings: dict[str, str]) -> Iterator[int]:
    """Run gunicorn on an inherited socket, and yield its port.

    Raise SystemExit if it does not start.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.create_server(("127.0.0.1", 0), backlog=2048) as listener,
    ):
        log, bind, port = (
            Path(folder) / "log",
            f"fd://{listener.fileno()}",
            listener.getsockname()[1],
        )
        command = [
            sys.executable,
            "-m",
            "gunicorn",
            "--no-control-socket",
            *words,
            *([] if settings else ["-b", bind]),
        ]
        environment = {**os.environ, **settings, "MOCKUPSTREAM_BIND": bind}
        process = child_processes.start(command, log, environment, [listener.fileno()])
        # Otherwise, the first request would wait if the server does not start.
        listener.close()
        try:
            with contextlib.closing(
                HTTPConnection("127.0.0.1", port, timeout=30)
            ) as connection:
                connection.request("GET", "/")
                connection.getresponse().read()
            yield port
        except ConnectionError as error:
            raise SystemExit(
                f"a server of the benchmark did not start: {error};"
                f" {log.read_text()[-2000:]}"
            ) from error
        finally:
            child_processes.stop(process, patience=5)
