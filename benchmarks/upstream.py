"""The aiohttp upstream: over a bare handler, over httpbin, and how exactly it keeps a delay. Driven by wrk."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from benchmarks.figures import BenchmarkRow, at_least
from clientlab import child_processes
from clientlab.generators import programs
from clientlab.generators.interfaces import Load
from clientlab.generators.wrk import Wrk
from clientlab.workload.workload import Request

SECONDS = 4
_REPOSITORY = Path(__file__).parents[1]
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
HTTPBIN = _REPOSITORY / ".venv-httpbin"
"""A virtual environment."""
GUNICORN = ("-m", "gunicorn", "--no-control-socket")


def over_bare(rounds: int) -> BenchmarkRow:
    """Behaviour and metrics against nothing but aiohttp, one worker each."""
    worker = "aiohttp.GunicornUVLoopWebWorker"
    command = [sys.executable, *GUNICORN, "benchmarks.bare_upstream:application", "-w1", "-k", worker]
    with upstream(1) as ours, serving([*command, "--keep-alive", "75"], {}) as bare:
        ratios = [_rate(ours, "/") / _rate(bare, "/") for _ in range(rounds)]
    return at_least("aiohttp upstream over a bare aiohttp handler, 1 worker", ratios, 0.8)


def over_httpbin(rounds: int) -> BenchmarkRow:
    """The same question asked of httpbin, four workers each."""
    python = _httpbin_python()
    with upstream(4) as ours, serving([python, *GUNICORN, "-w4", "httpbin:app"], {}) as httpbin:
        ratios = [_rate(ours, "/") / _rate(httpbin, "/get") for _ in range(rounds)]
    return at_least("aiohttp upstream over httpbin, 4 workers", ratios, 8)


def delays(count: int = 400) -> Iterator[BenchmarkRow]:
    """BenchServer delay less the delay asked for."""
    with upstream(1) as served:
        late = sorted(_lateness(served.port, "50ms", 0.050, count))
        cuts = quantiles(late, n=100)
        spread = f"range of {count}"
        name = "served less asked delay of 50 ms, one client"
        yield BenchmarkRow(f"{name}, median", median(late) * 1e3, late[0] * 1e3, late[-1] * 1e3, spread, "<= 0.7",
                  median(late) <= 0.7e-3, "ms")  # fmt: skip
        yield BenchmarkRow(f"{name}, p99", cuts[98] * 1e3, late[0] * 1e3, late[-1] * 1e3, spread, "<= 1.2",
                  cuts[98] <= 1.2e-3, "ms")  # fmt: skip
        mids = sorted(_median_latency(served, "/?delay=100ms", connections=1000) - 0.100 for _ in range(3))
        yield BenchmarkRow("served less asked delay of 100 ms, 1,000 in flight, median", mids[1] * 1e3, mids[0] * 1e3,
                  mids[-1] * 1e3, "range of 3 runs", "<= 6", mids[1] <= 6e-3, "ms")  # fmt: skip


def _lateness(port: int, delay: str, seconds: float, count: int) -> Iterator[float]:
    """By a socket and nothing else: a client library would add its own time."""
    request = f"GET /?delay={delay} HTTP/1.1\r\nHost: upstream\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            began = time.perf_counter()
            connection.sendall(request)
            connection.recv(65536)
            yield time.perf_counter() - began - seconds


def _rate(served: BenchServer, path: str, connections: int = 32) -> float:
    """Requests a second, by wrk. Raises GeneratorFailed, and SystemExit where a request failed."""
    load = Load(Request("GET", f"{served.url}{path}", {}, None), connections, SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        report = programs.drive(Wrk(), load, Path(folder)).report
    if report.failed:
        raise SystemExit(f"{report.failed:,} requests of wrk to {load.request.url} failed")
    return report.succeeded / report.seconds


def _median_latency(served: BenchServer, path: str, connections: int) -> float:
    """Seconds, by wrk."""
    url = f"{served.url}{path}"
    command = ["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}", "--latency", url]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    middle = re.search(r"50%\s+([\d.]+)(us|ms|s)", out)
    if middle is None or "Non-2xx" in out:
        raise SystemExit(f"wrk could not measure {url}:\n{out}")
    return float(middle[1]) * _UNITS[middle[2]]


@dataclass(frozen=True)
class BenchServer:
    """A server on loopback, and the process that it was started as."""

    port: int
    pid: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def upstream(workers: int) -> contextlib.AbstractContextManager[BenchServer]:
    """The aiohttp upstream."""
    command = [sys.executable, "-m", "gunicorn", "-c", "python:mockupstream.gunicorn_config"]
    settings = {"MOCKUPSTREAM_FRAMEWORK": "aiohttp", "MOCKUPSTREAM_WORKERS": str(workers)}
    return serving(command, settings)


@contextlib.contextmanager
def serving(command: list[str], settings: dict[str, str]) -> Iterator[BenchServer]:
    """A gunicorn on an inherited socket, until left."""
    log = _REPOSITORY / "results" / "bench-servers.log"
    log.parent.mkdir(exist_ok=True)
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        bind, port = f"fd://{listener.fileno()}", listener.getsockname()[1]
        words = command if settings else [*command, "-b", bind]
        environment = {**os.environ, **settings, "MOCKUPSTREAM_BIND": bind}
        process = child_processes.start(words, log, environment, [listener.fileno()])
    try:
        _wait(port, log)
        yield BenchServer(port, process.pid)
    finally:
        child_processes.stop(process, patience=5)


def _wait(port: int, log: Path) -> None:
    """Until it answers. The socket listens already, so the first request waits by itself.

    Raises SystemExit where the server does not start.
    """
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        try:
            connection.request("GET", "/status/200")
            connection.getresponse().read()
        except ConnectionError as error:
            raise SystemExit(f"a server of the benchmark did not start: {error} (log: {log})") from error


def _httpbin_python() -> str:
    """An environment of httpbin's own, made once: it wants other versions than the lab."""
    python = HTTPBIN / "bin" / "python"
    if not python.exists():
        uv = str(Path(sys.executable).parent / "uv")
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(HTTPBIN)], check=True)
        packages = ["httpbin==0.10.4", "gunicorn", "setuptools"]
        subprocess.run([uv, "pip", "install", "--quiet", "--python", str(python), *packages], check=True)
    return str(python)
