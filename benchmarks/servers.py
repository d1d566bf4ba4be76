"""The aiohttp upstream beside go-httpbin and httpbin: requests per CPU second of the server, by a load generator.

Each server answers the same request, ``GET /status/200``, in rounds in which another one begins in turn.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from statistics import median

import psutil

from benchmarks.drivers import IN_FLIGHT, SECONDS, driven, say_left_out
from benchmarks.figures import BenchmarkRow, ratio
from benchmarks.upstream import GUNICORN, HTTPBIN, BenchServer, serving, upstream
from clientlab import child_processes
from clientlab.generators import programs
from clientlab.generators.commands import Wrk
from clientlab.generators.generator_interface import GeneratorLoad
from clientlab.measuring.usage import cpu_seconds_of
from clientlab.testbeds.server_process import free_ports
from clientlab.workload.workload import Request

_OURS = "aiohttp upstream"
_PATIENCE = 20.0
_INSTALL_HTTPBIN = (
    f"uv venv {HTTPBIN.name}; uv pip install --python {HTTPBIN.name} httpbin==0.10.4 'gunicorn[gevent]>=25' setuptools"
)
_INSTALL_GO_HTTPBIN = "go install github.com/mccutchen/go-httpbin/v2/cmd/go-httpbin@latest"


def rows(rounds: int) -> Iterator[BenchmarkRow]:
    """A row a server: requests per CPU second of the upstream over its own."""
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(upstream(1))
        generator = programs.fastest(_load(ours))
        if generator is None:
            say_left_out("the comparison of servers", f"no load generator is installed; {Wrk.install}")
            return
        servers = {_OURS: ours, **dict(_others(stack))}
        names, found = list(servers), {name: list[tuple[float, float]]() for name in servers}
        for number in range(rounds):
            first = number % len(names)
            for name in names[first:] + names[:first]:
                served = servers[name]
                before = cpu_seconds_with_workers(served.pid)
                sent = driven(generator, _load(served))
                found[name].append((sent.rate, sent.requests / (cpu_seconds_with_workers(served.pid) - before)))
    for name, loads in found.items():
        ratios = [own / other for (_, own), (_, other) in zip(found[_OURS], loads, strict=True)]
        rate, each = median(rate for rate, _ in loads), median(each for _, each in loads)
        what = name if name == _OURS else f"{_OURS} over {name}"
        about = f"{each:,.0f} requests per CPU second, {rate:,.0f} req/s, by {generator.name}"
        yield ratio(f"{what}, per CPU second of the server: {about}", ratios)


def _load(served: BenchServer) -> GeneratorLoad:
    return GeneratorLoad(Request("GET", f"{served.url}/status/200", {}, None), IN_FLIGHT, SECONDS)


def _others(stack: contextlib.ExitStack) -> Iterator[tuple[str, BenchServer]]:
    """Name → server, of those that are installed. `stack` stops them."""
    if which("go-httpbin") is None:
        say_left_out("go-httpbin", f"it is not installed; {_INSTALL_GO_HTTPBIN}")
    else:
        yield "go-httpbin", stack.enter_context(_go_httpbin())
    python = HTTPBIN / "bin" / "python"
    if not python.exists():
        say_left_out("httpbin", f"there is no {HTTPBIN.name}; {_INSTALL_HTTPBIN}")
        return
    has_gevent = (
        subprocess.run([python, "-c", "import gunicorn.workers.ggevent"], capture_output=True, check=False).returncode
        == 0
    )
    worker = "gevent" if has_gevent else "sync"
    command = [str(python), *GUNICORN, "-w1", "-k", worker, "httpbin:app"]
    yield f"httpbin (gunicorn, {worker})", stack.enter_context(serving(command, {}))


@contextlib.contextmanager
def _go_httpbin() -> Iterator[BenchServer]:
    """go-httpbin on all cores, as it is by default. It writes a line for each request, here to nowhere."""
    (port,) = free_ports({"go-httpbin": 0})
    command = ["go-httpbin", "-host", "127.0.0.1", "-port", str(port)]
    process = child_processes.start(command, Path(os.devnull), os.environ)
    try:
        _wait(port, process)
        yield BenchServer(port, process.pid)
    finally:
        child_processes.stop(process, patience=0)


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    """Until it answers. Raises SystemExit where it does not."""
    deadline = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(ConnectionRefusedError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
            connection.request("GET", "/status/200")
            connection.getresponse().read()
            connection.close()
            return
        time.sleep(0.01)
    raise SystemExit(f"go-httpbin does not answer at port {port}")


def cpu_seconds_with_workers(pid: int) -> float:
    """CPU time of a server and of its workers so far. Raises SystemExit where the system has no clock of a process."""
    pids = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    seconds = [cpu_seconds_of(one) for one in pids]
    known = [one for one in seconds if one is not None]
    if len(known) != len(pids):
        raise SystemExit("the CPU time of a server can't be read: that is known on Linux only")
    return sum(known)
