"""External testbed: a server of the user's own. The lab starts nothing, and reads no counters."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from clientlab.clients.client_interface import Budget
from clientlab.clients.http_client import HttpClient
from clientlab.errors import FieldError, ServerLost
from clientlab.measuring.connections import PeerAddress
from clientlab.redaction import mask_text
from clientlab.results.server_counters import ServerCounters
from clientlab.testbeds.server_process import LOOPBACK
from clientlab.workload.making import requests_of
from clientlab.workload.workload import DEFAULT_CHUNK_SIZE, Request, Workload

_DEFAULT_PORTS = {"http": 80, "https": 443}


class _Answered(Exception):
    """The body of a response has begun."""


def _answered(_chunk: bytes) -> None:
    """Read no more of a body, which may be endless."""
    raise _Answered


class ExternalTarget:
    """The server of one URL. Raises FieldError for a URL or a CA file that cannot be used.

    `permits_public`: whether load may go to these addresses of the internet. Without permission, they are an error,
    and no connection to them is opened.
    """

    def __init__(
        self, url: str, ca_file: Path | None = None, permits_public: Callable[[Sequence[str]], bool] = lambda _: False
    ) -> None:
        parts = split_url(url)
        self.secure = parts.scheme == "https"
        self._ca_file = None if ca_file is None else _checked(ca_file, url)
        self._base = f"{parts.scheme}://{parts.netloc}"
        self.name = parts.netloc
        self.path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._host = parts.hostname or ""
        self._address, self._peers = _address(parts, permits_public)
        self._unanswered: Workload | None = None

    def probe(self, workload: Workload) -> None:
        """Send one request of the workload. Raises FieldError where the response is missing or an error."""
        request = requests_of(workload, self._base)(0)
        try:
            status = self._send(request, workload.timeout, len)
        except ssl.SSLError as error:
            message = f"{error}; clients verify certificates: name the CA's PEM file with `ca_file`"
            raise FieldError(["url"], message, value=request.url) from error
        except Exception as error:
            reason = str(error) or type(error).__name__
            message = f"no response to {workload.method} ({reason}); is this the server's address?"
            raise FieldError(["url"], message, value=request.url) from error
        if status >= 400:
            message = f"status {status} for {workload.method}, so every request would be an error"
            raise FieldError(["url"], f"{message}; correct the path, the method or the headers", value=request.url)

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:  # noqa: ARG002 - there is only one
        """Why a request of the workload gets no response; None where it gets one, of whatever status.

        The lab knows no health check of a foreign server. An error status is an answer: to refuse load with 503 is a
        result. The workload's own time limit holds, because the server may be slow by nature.
        """
        self._unanswered = workload
        request = requests_of(workload, self._base)(0)
        try:
            with contextlib.suppress(_Answered):
                self._send(request, workload.timeout, _answered, chunk_size=1)
        except Exception as error:  # noqa: BLE001 - whatever its kind, there was no response
            reason = str(error) or type(error).__name__
            return f"{self.name} does not answer a plain {request.method} within {workload.timeout:g} s ({reason})"
        self._unanswered = None
        return None

    def _send(
        self, request: Request, timeout: float, sink: Callable[[bytes], object], chunk_size: int = DEFAULT_CHUNK_SIZE
    ) -> int:
        """Send one request on a connection of its own. The status of the response.

        `sink` gets the body in chunks of that size, and may raise.
        """
        client = HttpClient(Budget(1, timeout, self._ca_file, chunk_size), lambda: None)
        client.open()
        try:
            return client.stream(request, sink)
        finally:
            client.close()

    def serve(self, upstream: str) -> None:
        """The server is running. Raises ServerLost where it did not answer in an earlier trial, nor does now."""
        if self._unanswered is not None and (trouble := self.trouble(upstream, "direct", self._unanswered)):
            raise ServerLost(trouble)

    def base_url(self, upstream: str, route: str) -> str:  # noqa: ARG002 - there is only one
        return self._base

    def address(self, upstream: str, route: str) -> PeerAddress:  # noqa: ARG002
        return self._address

    def targets(self) -> list[tuple[str, int]]:
        """The IP address and the port of the server: the first that accepted a connection."""
        refusing = self._address.refusing
        return [(next(peer for peer in self._peers if peer not in refusing), self._address.port)]

    def behind_link(
        self,
        upstream: str,  # noqa: ARG002
        route: str,  # noqa: ARG002
        port_of: Callable[[tuple[str, int]], int],
    ) -> tuple[str, PeerAddress]:
        """Base URL of the server behind a link, whose port for the target is `port_of`, and its address.

        With TLS the name stays, because the certificate is for it. The header Host is the workload's.
        """
        port = port_of(*self.targets())
        if not self.secure:
            return f"http://{LOOPBACK}:{port}", PeerAddress(port)
        return f"https://{self._host}:{port}", PeerAddress(port, tuple(one for one in self._peers if one != LOOPBACK))

    def named_in(self, workload: Workload) -> Workload:
        """The workload with the server's name in the header Host, unless it has one: a link has another address."""
        if any(name.lower() == "host" for name in workload.headers):
            return workload
        return replace(workload, headers={**workload.headers, "Host": self.name})

    def check_link(self) -> None:
        """Raises FieldError where clients that verify the server's certificate cannot be led to a link."""
        if self.secure and LOOPBACK not in self._peers:
            message = (
                f"a link listens at {LOOPBACK}, and clients connect to {self._host} because they verify its "
                f"certificate; measure an http:// address, or a tunnel to the server whose name is {self._host} here"
            )
            raise FieldError(["url"], message, also=["rtt"])

    def ca_file(self, upstream: str, route: str) -> str | None:  # noqa: ARG002
        return self._ca_file

    def check(self) -> None:
        """Nothing to do: the server's process is not ours."""

    def reading(self, upstream: str, route: str) -> ServerCounters:  # noqa: ARG002
        return ServerCounters()


def split_url(url: str) -> SplitResult:
    """The parts of a URL. Raises FieldError without http(s) scheme, host or readable port, or with a password."""
    shown = repr(mask_text(url))
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise FieldError(["url"], f"{error}; correct the URL", value=shown) from error
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        message = "no http:// or https:// and host; write it whole, as http://127.0.0.1:8000/"
        raise FieldError(["url"], message, value=shown)
    if port == 0:
        raise FieldError(["url"], "no server can listen at port 0; correct the URL", value=shown)
    if parts.username is not None:
        host = parts.netloc.rpartition("@")[2]
        message = f"a user name stands before {host}, and not all clients send it; write a header 'Authorization: ...'"
        raise FieldError(["url"], message)
    return parts


def _checked(ca_file: Path, url: str) -> str:
    """The absolute path, since trials may run in another folder. Raises FieldError where no client could use it."""
    if not url.startswith("https:"):
        raise FieldError(["ca_file"], f"only an https:// address has a certificate, and `url` is {url!r}; leave it out")
    if not ca_file.is_file():  # opening a pipe into which nobody writes would wait for ever
        raise FieldError(["ca_file"], "No such file or directory; write a file of PEM certificates", value=ca_file)
    try:
        ssl.create_default_context(cafile=str(ca_file))
    except OSError as error:
        message = f"{error.strerror or error}; write a file of PEM certificates"
        raise FieldError(["ca_file"], message, value=ca_file) from error
    return str(ca_file.resolve())


def _address(parts: SplitResult, permits_public: Callable[[Sequence[str]], bool]) -> tuple[PeerAddress, list[str]]:
    """The port, with the addresses of the host that refuse connections, and all its addresses.

    Raises FieldError where all refuse, and where one is an address of the internet without permission.
    """
    host, port = parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FieldError(["url"], f"host {host!r} is not found ({reason}); correct the URL") from error
    others = sorted({str(peer[0]) for *_, peer in found if _is_public(str(peer[0]))})
    if others and not permits_public(others):
        message = (
            f"load would go to {', '.join(others)} on the internet; "
            "set CLIENTLAB_PUBLIC=1 if the owner of the server permits that"
        )
        raise FieldError(["url"], message, value=repr(f"{parts.scheme}://{parts.netloc}"))
    refusing = []
    for family, kind, protocol, _, peer in found:
        with socket.socket(family, kind, protocol) as probe:
            probe.settimeout(5)
            if probe.connect_ex(peer) != 0:
                refusing.append(str(peer[0]))
    if len(refusing) == len(found):
        raise FieldError(["url"], f"nothing listens at {host}:{port}; start the server or correct the URL")
    return PeerAddress(port, tuple(refusing)), list(dict.fromkeys(str(peer[0]) for *_, peer in found))


def _is_public(address: str) -> bool:
    """Whether IANA lists the address as globally reachable: it is neither loopback nor private nor link-local."""
    return ipaddress.ip_address(address.partition("%")[0]).is_global
