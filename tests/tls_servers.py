"""Certificates of a CA of the tests' own."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme


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
