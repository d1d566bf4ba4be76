"""Upstreams as processes of this machine: the command that starts one, and its description for the run file."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from clientlab import child_processes
from clientlab.errors import LabError
from clientlab.testbeds.scrape import Endpoint
from clientlab.testbeds.server_process import LOOPBACK, Server
from clientlab.upstreams import MOST, Upstream

_BACKLOG = 2048
_MOST_BACKLOG = 65_535  # as servers/mockupstream/settings.py has it


@dataclass(frozen=True)
class WorkerCounts:
    """Processes of the upstreams without settings. `threads`: requests that one Flask process can hold at once.

    `backlog`: connections that may wait to be accepted, if the system permits so many.
    """

    flask: int
    aiohttp: int
    threads: int
    backlog: int = _BACKLOG


def workers_for(concurrency: int, cpus: Collection[int] = ()) -> WorkerCounts:
    """Enough workers that the upstream does not limit a trial with `concurrency` requests in flight.

    Flask needs a thread for each delayed request. The client needs CPU cores as well: half of them, and at least one,
    stay free for it. `cpus`: those to which the upstream is pinned.
    """
    own = len(cpus) or max(1, (os.cpu_count() or 2) // 2)
    flask = max(2, own)
    threads = max(32, -(-concurrency // flask) + 8)
    return WorkerCounts(flask, own, threads, min(max(_BACKLOG, concurrency), _MOST_BACKLOG))


def start(
    upstream: Upstream, workers: WorkerCounts, listener: socket.socket, logs: Path, cpus: Collection[int] = ()
) -> Server:
    """Start to serve on a bound socket, which the caller still owns, on these CPUs. Raises LabError, OSError."""
    _check_installed(upstream)
    descriptor = listener.fileno()
    command, environment = _gunicorn(upstream, workers, descriptor)
    if upstream.development:
        listener.listen(socket.SOMAXCONN)  # werkzeug needs a socket that is listening
        command = child_processes.python("mockupstream", upstream.framework, "--fd", str(descriptor))
    environment = {"MOCKUPSTREAM_BACKLOG": str(workers.backlog), **os.environ, **environment}
    log = logs / f"{re.sub(r'[^A-Za-z0-9.]+', '-', upstream.name)}.log"
    process = child_processes.start(command, log, environment, [descriptor], cpus=cpus)
    endpoint = Endpoint(LOOPBACK, listener.getsockname()[1])
    return Server(upstream.name, endpoint, process, log, _workers(upstream, workers))


def description(upstream: Upstream, workers: WorkerCounts) -> str:
    """How the upstream is served, for the run's surroundings."""
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


def _check_installed(upstream: Upstream) -> None:
    """Raises LabError where a part of the upstream is missing, as in the image of clients. Imports nothing."""
    for module in ("mockupstream", "gunicorn", upstream.framework):
        if find_spec(module) is None:
            raise LabError(
                f"{module} is not installed, so upstream {upstream.name!r} can't be started; pip install clientlab, "
                "or measure a server of yours with --url"
            )


def _gunicorn(upstream: Upstream, workers: WorkerCounts, descriptor: int) -> tuple[list[str], dict[str, str]]:
    environment = {
        "MOCKUPSTREAM_FRAMEWORK": upstream.framework,
        "MOCKUPSTREAM_BIND": f"fd://{descriptor}",
        "MOCKUPSTREAM_WORKERS": str(_workers(upstream, workers)),
        "MOCKUPSTREAM_WORKER_CLASS": upstream.worker_class,
    }
    if upstream.framework == "flask":  # the other needs no thread for a request
        environment["MOCKUPSTREAM_THREADS"] = str(_threads(upstream, workers))
    command = child_processes.python("mockupstream.gunicorn_server", "-c", "python:mockupstream.gunicorn_config")
    return command, environment


def _workers(upstream: Upstream, workers: WorkerCounts) -> int:
    if upstream.development:
        return 1
    plain: int = getattr(workers, upstream.framework)
    return upstream.workers or plain


def _threads(upstream: Upstream, workers: WorkerCounts) -> int:
    """Threads of each process: by default, all processes together hold as many requests as the plain upstream.

    Raises LabError where that is more than a process may have.
    """
    if upstream.threads is not None:
        return upstream.threads
    processes = _workers(upstream, workers)
    needed = -(-workers.flask * workers.threads // processes)
    if needed > MOST["threads"]:
        raise LabError(
            f"upstream {upstream.name!r} needs a thread for each request in flight, and {processes} processes have "
            f"{processes * MOST['threads']:,} at most; measure with fewer in flight, or on upstream aiohttp"
        )
    return needed
