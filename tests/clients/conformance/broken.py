"""Clients of a user's file that break one thing each, and one that breaks none."""

from __future__ import annotations

import pycurl
import urllib3

from clientlab.clients.http_client import HttpClient
from clientlab.clients.httpx_h2 import HttpxClientH2
from clientlab.clients.urllib3_pool import Urllib3Pool
from clientlab.workload.workload import Request


class Sound(Urllib3Pool):
    """Breaks nothing."""


class SoundH2(HttpxClientH2):
    """The same over HTTP/2."""

    http = "2"


class SendsTwice(Urllib3Pool):
    """Each request a second time."""

    def send(self, request):
        super().send(request)
        return super().send(request)


class LosesHeaders(Urllib3Pool):
    """None but the library's own."""

    def send(self, request):
        return super().send(Request(request.method, request.url, {}, request.body))


class Decompresses(Urllib3Pool):
    """Asks for compressed answers."""

    def send(self, request):
        headers = {**request.headers, "accept-encoding": "gzip"}
        return super().send(Request(request.method, request.url, headers, request.body))


class ChangesBody(Urllib3Pool):
    """Another body than that asked for."""

    def send(self, request):
        body = None if request.body is None else request.body[:-9] + b'"}'
        return super().send(Request(request.method, request.url, request.headers, body))


class ReadsPart(Urllib3Pool):
    """Not the whole answer: what it returns is JSON, but not what came."""

    def send(self, request):
        status, body = super().send(request)
        return status, b'{"ok": true}' if status == 200 else body


class KeepsNothing(HttpClient):
    """A connection a call, where it says that it keeps them."""

    policy = "per thread"

    def send(self, request):
        try:
            return super().send(request)
        finally:
            self._of_thread.connection.close()


class CountsTwice(Urllib3Pool):
    """Tells the lab of connections that Python has seen."""

    def __init__(self, budget, opened):
        super().__init__(budget, opened)
        self._opened = opened

    def open(self):
        super().open()
        self._opened()


class OneAtATime(Urllib3Pool):
    """A pool of one, which requests wait for."""

    def open(self):
        super().open()
        self._manager.connection_pool_kw["maxsize"] = 1


class Swallows(Urllib3Pool):
    """Every error is a good answer."""

    def send(self, request):
        try:
            _, body = super().send(request)
        except Exception:  # noqa: BLE001 - what is wrong with it
            body = b""
        return 200, body


class Unverified(Urllib3Pool):
    """Takes any certificate."""

    def open(self):
        super().open()
        self._manager = urllib3.PoolManager(retries=False, cert_reqs="CERT_NONE")


class AnyName(Urllib3Pool):
    """Takes a certificate for any name."""

    def open(self):
        super().open()
        self._manager = urllib3.PoolManager(retries=False, ca_certs=self._budget.ca_file, assert_hostname=False)


class RetriesToo(Urllib3Pool):
    """Sends again what failed, and goes where it is redirected to."""

    def send(self, request):
        try:
            return self._followed(request)
        except Exception:  # noqa: BLE001 - what is wrong with it
            return self._followed(request)

    def _followed(self, request):
        response = self._manager.request(request.method, request.url, headers=request.headers, body=request.body)
        if location := response.headers.get("location"):
            there = "/".join([*request.url.split("/")[:3], location.lstrip("/")])
            response = self._manager.request("GET", there, headers=request.headers)
        return response.status, response.data


class IsPatient(Urllib3Pool):
    """Waits for a second longer than it may."""

    def open(self):
        super().open()
        self._manager.connection_pool_kw["timeout"] = self._budget.timeout + 1


def fetch(url):
    """Send a request with a library that connects outside Python."""
    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, url)
    body = curl.perform_rb()
    return curl.getinfo(pycurl.RESPONSE_CODE), body
