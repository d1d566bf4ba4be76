"""Servers on loopback, for the figures of others: the aiohttp upstream, and any other one under gunicorn."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clientlab import child_processes

_REPOSITORY = Path(__file__).parents[1]
HTTPBIN = _REPOSITORY / ".venv-httpbin"
"""A virtual environment."""
GUNICORN = ("-m", "gunicorn", "--no-control-socket")


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
