"""Certificates of a CA that only the tests know."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme


class Authority:
    """A new CA and its files."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._ca = trustme.CA()
        self.ca_file = str(folder / "ca.pem")
        self._ca.cert_pem.write_to_path(self.ca_file)

    def context(self, *names: str) -> ssl.SSLContext:
        """Return the context of a server with a certificate for these names that speaks
        HTTP/1.1.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(*names).configure_cert(context)
        context.set_alpn_protocols(["http/1.1"])
        return context
