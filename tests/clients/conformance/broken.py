"""Strategies of a user's file: two that work correctly, and others that break a thing
or two each.
"""

from __future__ import annotations

import subprocess
from http.cookiejar import DefaultCookiePolicy

import pycurl
import urllib3

from clientlab.clients.http_client import HttpClient
from clientlab.clients.httpx_clients import HttpxClientH2
from clientlab.clients.requests_clients import RequestsSession
from clientlab.clients.urllib3_clients import Urllib3Pool
from clientlab.executors.processes import Processes
from clientlab.executors.threads import Threads
from clientlab.workload.workload import Request


class Sound(Urllib3Pool):
    """Breaks nothing."""


class SoundH2(HttpxClientH2):
    """Breaks nothing, over HTTP/2."""

    http = "2"


class SendsTwice(Urllib3Pool):
    """Sends each request twice, with only the library's own headers."""

    def send(self, request):
        bare = Request(request.method, request.url, {}, request.body)
        super().send(bare)
        return super().send(bare)


class StoresCookies(RequestsSession):
    """Sends the cookies of earlier answers."""

    def open(self):
        super().open()
        self.session.cookies.set_policy(DefaultCookiePolicy())


class AddsAHeader(RequestsSession):
    """Sends a header that nobody asked for."""

    def open(self):
        super().open()
        self.session.headers["X-Trace"] = "1"


class HoldsEvents(Urllib3Pool):
    """Hands a stream over when it is complete."""

    def stream(self, request, sink):
        chunks = []
        status = super().stream(request, chunks.append)
        for chunk in chunks:
            sink(chunk)
        return status


class KeepsNothing(HttpClient):
    """Opens a connection per call, although its policy is to keep them, and sends a
    shorter body.
    """

    policy = "per thread"

    def send(self, request):
        body = None if request.body is None else request.body[:-9] + b'"}'
        try:
            return super().send(
                Request(request.method, request.url, request.headers, body)
            )
        finally:
            self._mine.connection.close()


class CountsTwice(Urllib3Pool):
    """Reports a connection that the lab has already counted."""

    def __init__(self, budget, opened):
        super().__init__(budget, opened)
        self._opened = opened

    def open(self):
        super().open()
        self._opened()


class OneAtATime(Urllib3Pool):
    """Makes requests wait for a pool of one connection, and returns JSON that the
    server did not send.
    """

    def open(self):
        super().open()
        self._manager.connection_pool_kw["maxsize"] = 1

    def send(self, request):
        status, body = super().send(request)
        return status, b'{"ok": true}' if body else body


class Swallows(Urllib3Pool):
    """Returns a success for every error."""

    def send(self, request):
        try:
            _, body = super().send(request)
        except Exception:  # noqa: BLE001 - the mistake to be found
            body = b""
        return 200, body


class Unverified(Urllib3Pool):
    """Accepts any certificate."""

    def open(self):
        super().open()
        self._manager = urllib3.PoolManager(retries=False, cert_reqs="CERT_NONE")


class AnyName(Urllib3Pool):
    """Accepts a certificate for any name."""

    def open(self):
        super().open()
        self._manager = urllib3.PoolManager(
            retries=False, ca_certs=self._budget.ca_file, assert_hostname=False
        )


class RetriesToo(Urllib3Pool):
    """Sends failed requests again, and follows redirects."""

    def send(self, request):
        try:
            return self._followed(request)
        except Exception:  # noqa: BLE001 - the mistake to be found
            return self._followed(request)

    def _followed(self, request):
        response = self._manager.request(
            request.method, request.url, headers=request.headers, body=request.body
        )
        if location := response.headers.get("location"):
            there = "/".join([*request.url.split("/")[:3], location.lstrip("/")])
            response = self._manager.request("GET", there, headers=request.headers)
        return response.status, response.data


class IsPatient(Urllib3Pool):
    """Waits one second longer than the time limit."""

    def open(self):
        super().open()
        self._manager.connection_pool_kw["timeout"] = self._budget.timeout + 1


def fetch(url):
    """Send a request with a library that connects outside Python."""
    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, url)
    body = curl.perform_rb()
    return curl.getinfo(pycurl.RESPONSE_CODE), body


class IgnoresTheEnd:
    """An executor that sends far longer than the duration."""

    def __init__(self, context):
        self._context = context

    def open(self):
        self._call = self._context.open(1)

    def run(self, numbers):
        if numbers.deadline is not None:
            numbers.deadline += 1.5
        self._call.send_all(numbers)

    def close(self):
        self._call.close()


class OneProcessTooFew(Processes):
    """An executor with one process fewer than requests may be in flight."""

    def open(self):
        super().open()
        self._pool._max_workers -= 1


class LeavesAProcess(Threads):
    """An executor that starts a process which outlives it."""

    def open(self):
        super().open()
        subprocess.Popen(["sleep", "9"], start_new_session=True)
