"""External testbed: the user's own server.

The lab starts nothing, and reads no counters.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import ssl
import time
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn
from urllib.parse import SplitResult, urlsplit

from clientlab.clients.client_interface import Budget
from clientlab.clients.http_client import HttpClient
from clientlab.errors import (
    FieldError,
    LabError,
    ServerLost,
    find_exhaustion,
    status_kind,
)
from clientlab.results.server_counters import ServerCounters
from clientlab.running.trial_runner import OUTAGE_SECONDS
from clientlab.testbeds.servers import LOOPBACK
from clientlab.text import mask_text
from clientlab.trial.context import PeerAddress
from clientlab.workload.parts import EventStream
from clientlab.workload.requests import requests_of
from clientlab.workload.workload import Request, Workload, change

_PROBES = 3
_SHOWN = 200  # bytes of an answer that is an error
_DEFAULT_PORTS = {"http": 80, "https": 443}
_PAUSE_SECONDS = 0.25  # between two looks whether a server is back


class _Answered(Exception):
    """The body of a response has begun."""


class ExternalTarget:
    """The server of one URL, at an `address`.

    Raise FieldError for a URL or a CA file that cannot be used.

    `permits_public` gets addresses of the internet, and returns whether load may go
    there.
    """

    def __init__(
        self,
        url: str,
        ca_file: str | None = None,
        permits_public: Callable[[Sequence[str]], bool] = lambda _: False,
    ) -> None:
        parts = split_url(url)
        self.secure = parts.scheme == "https"
        if ca_file is not None:
            ca_file = _check_ca_file(ca_file, url)
        self.name = parts.netloc
        self.path = parts.path or "/"
        if parts.query:
            self.path += f"?{parts.query}"
        self._host = parts.hostname or ""
        refusing, self._peers = _find_peers(parts, permits_public)
        origin = f"{parts.scheme}://{parts.netloc}"
        self.address = PeerAddress(origin, refusing, ca_file)
        self._unanswered: Workload | None = None

    def probe(self, workload: Workload) -> None:
        """Send one request of the workload.

        Raise FieldError if the response is missing or an error.

        It is sent again if it fails at once: a server may fail its first request, or
        some of them.
        """
        for left in reversed(range(_PROBES)):
            try:
                self._probe_once(workload)
                break
            except FieldError as error:
                if not left or isinstance(error.__cause__, ssl.SSLError | TimeoutError):
                    raise

    def _probe_once(self, workload: Workload) -> None:
        request = requests_of(workload, self.address.url)(0)
        beginning = bytearray()

        def keep_beginning(chunk: bytes) -> None:
            beginning.extend(chunk[: _SHOWN - len(beginning)])

        shown_url = mask_text(request.url)
        try:
            status = self._send(request, workload.limits.timeout, keep_beginning)
        except Exception as error:
            reason = str(error) or type(error).__name__
            advice = "correct the URL"
            if isinstance(error, ssl.SSLError):
                advice = "name the CA's PEM file with `ca_file`"
            message = f"no response to {request.method} ({reason}); {advice}"
            raise FieldError(["url"], message, value=shown_url) from error
        kind = status_kind(status, workload.reading.expect)
        # Single requests of a recording may have failed when it was made.
        if workload.replay is not None or kind is None:
            return
        message = (
            f"status {status} for each of {_PROBES} {workload.request.method}s, so"
            " every request would be an error"
        )
        answer = " ".join(beginning.decode(errors="replace").split())
        if answer:
            message += f" ({mask_text(answer)})"
        message += (
            "; correct the path, the method or the headers, or name the statuses of"
            " successes with `expect`"
        )
        if "Content-Type" in request.headers.keys() - workload.request.headers.keys():
            message += (
                f"; the body was sent as {request.headers['Content-Type']}: `headers`"
                " names no Content-Type"
            )
        raise FieldError(["url"], message, value=shown_url)

    def trouble(self, workload: Workload) -> str | None:
        """Return why a request of the workload gets no response, or None if it does.

        It may have any status: the lab knows no health check of this server. The body
        may be endless, so only its beginning is read.
        """
        self._unanswered = workload
        request = requests_of(workload, self.address.url)(0)

        def stop_reading(_chunk: bytes) -> None:
            raise _Answered

        try:
            with contextlib.suppress(_Answered):
                self._send(request, workload.limits.timeout, stop_reading)
        except Exception as error:  # noqa: BLE001 - whatever its kind, there was no response
            reason = str(error) or type(error).__name__
            silent = (
                f"{self.name} does not answer a plain {request.method} within"
                f" {workload.limits.timeout:g} s ({reason})"
            )
            return find_exhaustion(error) or silent
        self._unanswered = None
        return None

    def _send(
        self, request: Request, timeout: float, sink: Callable[[bytes], object]
    ) -> int:
        """Send a request on a new connection and return its status.

        `sink` gets the body as it comes, and may raise.
        """
        ca_file = self.address.ca_file
        budget = Budget(1, timeout, ca_file, chunk_size=None, decode=True)
        client = HttpClient(budget, lambda: None)
        client.open()
        try:
            return client.stream(request, sink)
        finally:
            client.close()

    def serve(self) -> None:
        """Wait for a server that did not answer in an earlier trial.

        Raise ServerLost if it stays away.
        """
        until = time.monotonic() + OUTAGE_SECONDS
        while self._unanswered is not None:
            trouble = self.trouble(self._unanswered)
            if trouble is None:
                return
            if time.monotonic() > until:
                raise ServerLost(trouble)
            time.sleep(_PAUSE_SECONDS)

    @property
    def target(self) -> tuple[str, int]:
        """The server's first IP address that accepted a connection, and its port."""
        refusing = self.address.refusing
        accepting = next(peer for peer in self._peers if peer not in refusing)
        return accepting, self.address.port

    def behind_link(self, port: int) -> PeerAddress:
        """Return the server's address behind a link with this port.

        With TLS, the certificate's name stays.
        """
        if not self.secure:
            return PeerAddress(f"http://{LOOPBACK}:{port}")
        refusing = tuple(peer for peer in self._peers if peer != LOOPBACK)
        ca_file = self.address.ca_file
        return PeerAddress(f"https://{self._host}:{port}", refusing, ca_file)

    def fit(self, workload: Workload, *, linked: bool) -> Workload:
        """Return the workload with the path of the URL, if it has one.

        `linked`: also with the server's name.
        """
        if workload.stream is not None:
            stream = EventStream(format=workload.stream.format, marks=False)
            request = workload.request
            if request.path == "/stream":  # of the lab's upstreams
                request = replace(request, path="/")
            workload = replace(workload, stream=stream, request=request)
        if self.path != "/":
            workload = change(workload, path=self.path)
        return self.named_in(workload) if linked else workload

    def named_in(self, workload: Workload) -> Workload:
        """Return the workload with the server's name in the header Host.

        A link's address has another name. A Host of the workload stays.
        """
        headers = workload.request.headers
        if any(name.lower() == "host" for name in headers):
            return workload
        return change(workload, headers={**headers, "Host": self.name})

    def check_link(self) -> None:
        """Raise FieldError if certificates cannot be verified behind a link."""
        if self.secure and LOOPBACK not in self._peers:
            raise FieldError(
                ["url"],
                f"a link listens at {LOOPBACK}, which is not {self._host}; measure an"
                " http:// address",
                also=["rtt"],
            )


class ExternalServers(UserDict[str, ExternalTarget]):
    """The user's own servers as one testbed, whose upstreams have the servers' names.

    A server without a name in `urls` gets its host and port as its name. `ca_file` is
    for those with https. Otherwise like `ExternalTarget`.
    """

    def __init__(
        self,
        urls: Mapping[str, str],
        ca_file: str | None,
        permits_public: Callable[[Sequence[str]], bool],
    ) -> None:
        super().__init__()
        secure = {url for url in urls.values() if url.lower().startswith("https:")}
        for name, url in urls.items():
            # Without any https, the first one refuses the file.
            used_ca_file = ca_file if url in secure or not secure else None
            try:
                server = ExternalTarget(url, used_ca_file, permits_public)
            except FieldError as error:
                place = ("servers", name) if name else ()
                raise error.within(*place) from error
            self[name or server.name] = server

    def serve(self, upstream: str) -> None:
        self[upstream].serve()

    def address(self, upstream: str, route: str) -> PeerAddress:  # noqa: ARG002 - a server of the user has one route
        return self[upstream].address

    def targets(self) -> list[tuple[str, int]]:
        """Return address and port of each server."""
        return [server.target for server in self.values()]

    def behind_link(
        self, upstream: str, _route: str, port_of: Callable[[tuple[str, int]], int]
    ) -> PeerAddress:
        server = self[upstream]
        return server.behind_link(port_of(server.target))

    def check(self) -> None:
        """Do nothing: the lab did not start the servers' processes."""

    def reading(self, upstream: str, route: str) -> ServerCounters:  # noqa: ARG002 - the lab cannot read any
        return ServerCounters()

    def faults_of(self, upstream: str) -> NoReturn:
        """Raise LabError: only the lab's upstreams have faults."""
        raise LabError(f"{self[upstream].name} is not the lab's, and has no faults")

    def trouble(self, upstream: str, route: str, workload: Workload) -> str | None:  # noqa: ARG002 - the protocol's
        return self[upstream].trouble(workload)


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL.

    Raise FieldError without http(s) scheme, host or valid port, or with a password.
    """
    shown = repr(mask_text(url))
    try:
        parts = urlsplit(url)
        if parts.port == 0:
            raise ValueError("no server can listen at port 0")
    except ValueError as error:
        raise FieldError(["url"], f"{error}; correct the URL", value=shown) from error
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise FieldError(
            ["url"],
            "the host, or http:// or https://, is missing; write the whole URL:"
            " http://127.0.0.1:8000/",
            value=shown,
        )
    if parts.username is not None:
        raise FieldError(
            ["url"],
            "not all clients send the user name in it; write a header 'Authorization:"
            " ...'",
            value=shown,
        )
    return parts


def _check_ca_file(ca_file: str, url: str) -> str:
    """Return the absolute path, since trials run in another folder.

    Raise FieldError if no client could use it.
    """
    if not url.startswith("https:"):
        raise FieldError(
            ["ca_file"],
            "only an https:// address has a certificate, and `url` is"
            f" {mask_text(url)!r}; leave it out",
        )
    try:
        ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        message = f"{error.strerror or error}; write a file of PEM certificates"
        raise FieldError(["ca_file"], message, value=ca_file) from error
    return str(Path(ca_file).resolve())


def _find_peers(
    parts: SplitResult, permits_public: Callable[[Sequence[str]], bool]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the addresses of the host that refuse connections, and all its addresses.

    Raise FieldError if all refuse, or if one is an address of the internet without
    permission.
    """
    host = parts.hostname or ""
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        message = f"host {host!r} is not found ({reason}); correct the URL"
        raise FieldError(["url"], message) from error
    addresses = list(dict.fromkeys(str(peer[0]) for *_, peer in found))
    public = sorted(filter(_is_public, addresses))
    if public and not permits_public(public):
        raise FieldError(
            ["url"],
            f"load would go to {', '.join(public)} on the internet; set"
            " CLIENTLAB_PUBLIC=1 if its owner permits that",
            value=repr(f"{parts.scheme}://{parts.netloc}"),
        )
    refusing = []
    for family, kind, protocol, _, peer in found:
        with socket.socket(family, kind, protocol) as probe:
            probe.settimeout(5)
            if probe.connect_ex(peer) != 0:
                refusing.append(str(peer[0]))
    if len(refusing) == len(found):
        message = (
            f"nothing listens at {host}:{port}; start the server or correct the URL"
        )
        raise FieldError(["url"], message)
    return tuple(refusing), addresses


def _is_public(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_global
