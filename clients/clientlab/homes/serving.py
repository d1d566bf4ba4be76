"""How an upstream is served: the command that starts it here, and what the run's surroundings say of it."""

from __future__ import annotations

import os
import re
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from clientlab import children
from clientlab.errors import LabError
from clientlab.homes.metrics_page import Endpoint
from clientlab.homes.starting import LOOPBACK, Server
from clientlab.upstreams import Upstream

_REPOSITORY = Path(__file__).parents[3]


@dataclass(frozen=True)
class Workers:
    """How the plain upstreams are served. `threads` is for Flask: as many requests a process may hold at once."""

    flask: int
    aiohttp: int
    threads: int


def workers_for(concurrency: int) -> Workers:
    """Enough that a mock upstream is not what limits a trial with that many in flight.

    Flask holds a thread for as long as it delays a request. The client needs cores as well: half of
    them, at least one, are left to it.
    """
    half = max(1, (os.cpu_count() or 2) // 2)
    flask = max(2, half)
    return Workers(flask, half, max(32, -(-concurrency // flask) + 8))


def start(upstream: Upstream, workers: Workers, listener: socket.socket, logs: Path) -> Server:
    """Begin to serve on a bound socket, which stays the caller's. Raises LabError, OSError."""
    descriptor = listener.fileno()
    command, environment = _gunicorn(upstream, workers, descriptor)
    if upstream.development:
        listener.listen(socket.SOMAXCONN)  # werkzeug takes a socket that listens already
        command = [sys.executable, "-m", "mockupstream", upstream.framework, "--fd", str(descriptor)]
    log = logs / f"{re.sub(r'[^A-Za-z0-9.]+', '-', upstream.name)}.log"
    process = children.start(command, log, {**os.environ, **environment}, [descriptor])
    endpoint = Endpoint(LOOPBACK, listener.getsockname()[1])
    return Server(upstream.name, endpoint, process, log, _workers(upstream, workers))


def says(upstream: Upstream, workers: Workers) -> str:
    """How it is served, for the run's surroundings."""
    if upstream.development:
        kinds = {
            "flask": "werkzeug's development server, a thread and a connection for each request",
            "aiohttp": "aiohttp's run_app, 1 process, asyncio",
        }
        return kinds[upstream.framework]
    count = _workers(upstream, workers)
    if upstream.framework == "aiohttp":
        return f"gunicorn uvloop, {count} workers"
    if upstream.worker_class == "sync":
        return f"gunicorn sync, {count} workers, a connection for each request"
    return f"gunicorn gthread, {count} workers x {_threads(upstream, workers)} threads"


def project_file(name: str) -> Path:
    """A file of the repository that the installed package needs. Raises LabError where it is missing."""
    path = _REPOSITORY / name
    if not path.is_file():
        raise LabError(f"{path} is missing: the lab runs from a clone of its repository; or use --url")
    return path


def _gunicorn(upstream: Upstream, workers: Workers, descriptor: int) -> tuple[list[str], dict[str, str]]:
    environment = {
        "MOCKUPSTREAM_FRAMEWORK": upstream.framework,
        "MOCKUPSTREAM_BIND": f"fd://{descriptor}",
        "MOCKUPSTREAM_WORKERS": str(_workers(upstream, workers)),
        "MOCKUPSTREAM_THREADS": str(_threads(upstream, workers)),
        "MOCKUPSTREAM_WORKER_CLASS": upstream.worker_class,
    }
    return [sys.executable, "-m", "gunicorn", "-c", str(project_file("servers/gunicorn.conf.py"))], environment


def _workers(upstream: Upstream, workers: Workers) -> int:
    if upstream.development:
        return 1
    plain: int = getattr(workers, upstream.framework)
    return upstream.workers or plain


def _threads(upstream: Upstream, workers: Workers) -> int:
    """Of each process: unless it is told, enough that all together hold what the plain upstream holds."""
    if upstream.threads is not None:
        return upstream.threads
    return -(-workers.flask * workers.threads // _workers(upstream, workers))
