"""A home that is not the lab's: any server of the user's own. Nothing is started, nothing can be read off."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from clientlab.clients.http_client import HttpClient
from clientlab.clients.shape import Budget
from clientlab.errors import LabError
from clientlab.measuring.connections import Address
from clientlab.runs.figures import Reading
from clientlab.workload import Workload, requests_of

_DEFAULT_PORTS = {"http": 80, "https": 443}


class Elsewhere:
    """The server of one URL."""

    def __init__(self, url: str, ca_file: Path | None = None) -> None:
        parts = split_url(url)
        self.secure = parts.scheme == "https"
        self._ca_file = None if ca_file is None else _checked(ca_file, url)
        self._base = f"{parts.scheme}://{parts.netloc}"
        self.name = parts.netloc
        self.path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._address = _address(parts)

    def probe(self, workload: Workload) -> None:
        """Send one request of the workload. Raises LabError where it is not answered well."""
        client = HttpClient(Budget(1, workload.timeout, self._ca_file), lambda: None)
        client.open()
        request = requests_of(workload, self._base)(0)
        try:
            status = client.stream(request, len)
        except ssl.SSLError as error:
            raise LabError(
                f"{request.url}: {error}; clients verify certificates: name the CA's PEM file with --ca-file"
            ) from error
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise LabError(
                f"{request.url}: no answer to {workload.method} ({reason}); is that the server's address?"
            ) from error
        finally:
            client.close()
        if status >= 400:
            raise LabError(
                f"{request.url}: answered {status} to {workload.method}, so every request would be an error; "
                "correct the path, the method or the headers"
            )

    def serve(self, upstream: str) -> None:
        """Nothing to do: it runs."""

    def base_url(self, upstream: str, route: str) -> str:  # noqa: ARG002 - there is but one
        return self._base

    def address(self, upstream: str, route: str) -> Address:  # noqa: ARG002
        return self._address

    def ca_file(self, upstream: str, route: str) -> str | None:  # noqa: ARG002
        return self._ca_file

    def reading(self, upstream: str, route: str) -> Reading:  # noqa: ARG002
        return Reading()


def split_url(url: str) -> SplitResult:
    """A URL in its parts. Raises LabError for one without http(s) scheme, host or readable port, or with a password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise LabError(f"--url {url!r}: {error}; correct the URL") from error
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise LabError(f"--url {url!r}: no http:// or https:// and host; write it whole, as http://127.0.0.1:8000/")
    if port == 0:
        raise LabError(f"--url {url!r}: nothing can listen at port 0; correct the URL")
    if parts.username is not None:
        host = parts.netloc.rpartition("@")[2]
        raise LabError(f"--url with a user before {host}: not all clients send it; write --header 'Authorization: ...'")
    return parts


def _checked(ca_file: Path, url: str) -> str:
    """The path, whole, since trials may run elsewhere. Raises LabError where no clients could use it."""
    if not url.startswith("https:"):
        raise LabError(f"--ca-file with --url {url!r}: only an https:// address has a certificate; leave it out")
    try:
        ssl.create_default_context(cafile=str(ca_file))
    except OSError as error:
        raise LabError(f"--ca-file {ca_file}: {error.strerror or error}; write a file of PEM certificates") from error
    return str(ca_file.resolve())


def _address(parts: SplitResult) -> Address:
    """Port, and which addresses of the name refuse. Raises LabError where none accepts."""
    host, port = parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LabError(f"--url: host {host!r} is not found ({reason}); correct the URL") from error
    refusing = []
    for family, kind, protocol, _, peer in found:
        with socket.socket(family, kind, protocol) as probe:
            probe.settimeout(5)
            if probe.connect_ex(peer) != 0:
                refusing.append(str(peer[0]))
    if len(refusing) == len(found):
        raise LabError(f"--url: nothing listens at {host}:{port}; start the server or correct the URL")
    return Address(port, tuple(refusing))
