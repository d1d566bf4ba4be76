"""Certificates of a CA of the tests' own, and Caddy, which speaks HTTP/2."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import trustme

from running import caddy_path, eventually, free_ports, stopped

CADDYFILE = """
{
	admin off
	persist_config off
	auto_https disable_redirects
	servers {
		protocols h1 h2
	}
}

https://127.0.0.1:%(port)d {
	bind 127.0.0.1
	tls %(certificate)s %(key)s
	reverse_proxy 127.0.0.1:%(behind)d {
		header_up X-Seen-Version {http.request.proto}
		header_up X-Seen-Port {http.request.remote.port}
	}
}
"""
"""The version that the client really spoke, and the port of its connection, are told to the server behind."""


class Authority:
    """A CA of its own and its files."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._ca = trustme.CA()
        self.ca_file = str(folder / "ca.pem")
        self._ca.cert_pem.write_to_path(self.ca_file)
        self.certificate, self.key = folder / "server.pem", folder / "server.key"
        ours = self._ca.issue_cert("127.0.0.1", "localhost")
        ours.cert_chain_pems[0].write_to_path(self.certificate)
        ours.private_key_pem.write_to_path(self.key)

    def context(self, *names: str) -> ssl.SSLContext:
        """Of a server that shows a certificate for these names, and speaks HTTP/1.1."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(*names).configure_cert(context)
        context.set_alpn_protocols(["http/1.1"])
        return context


@contextlib.contextmanager
def h2_server(behind: int, authority: Authority, folder: Path) -> Iterator[str]:
    """Caddy with HTTP/1.1 and HTTP/2 over TLS in front of a plain server; its URL."""
    (port,) = free_ports(1)
    words = {"port": port, "behind": behind, "certificate": authority.certificate, "key": authority.key}
    config = folder / "Caddyfile"
    config.write_text(CADDYFILE % words)
    command = [caddy_path(), "run", "--config", str(config), "--adapter", "caddyfile"]
    environment = {"XDG_DATA_HOME": str(folder / "data"), "HOME": str(folder)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process, stopped(process):
        eventually(lambda: _listens(port), "Caddy listens")
        yield f"https://127.0.0.1:{port}"


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
