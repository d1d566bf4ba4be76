"""Clients of a user's file that break one thing each, and one that breaks none."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import urllib3

from clientlab.clients.aiohttp_clients import AiohttpSession
from clientlab.clients.bodies import check_length
from clientlab.clients.http_client import HttpClient
from clientlab.clients.httpx_h2 import HttpxClientH2
from clientlab.clients.urllib3_pool import Urllib3Pool
from clientlab.errors import Fault
from clientlab.workload.workload import Request


class Sound(Urllib3Pool):
    """Breaks nothing. Bytes are read one by one: without chunks, urllib3 waits for as many as it is to read."""

    def events(self, request, sink):
        words = {"headers": request.headers, "body": request.body, "redirect": False, "preload_content": False}
        response = self._manager.request(request.method, request.url, **words)
        try:
            if response.length_remaining is None:
                check_length(response.headers, chunked=response.chunked)
            sink.answered(response.status)
            for chunk in response.stream(1) if response.status < 400 else [response.drain_conn() or b""]:
                sink(chunk)
            return response.status
        finally:
            response.close()
            response.release_conn()


class SoundH2(HttpxClientH2):
    """The same over HTTP/2, but that it leaves a stream without a reset, as httpx does."""

    http = "2"


class LateOnce(Urllib3Pool):
    """In the first of its trials one good answer comes too late, as on a machine that is busy elsewhere."""

    late: ClassVar = "/2"

    def send(self, request):
        mark = Path(os.environ["LATE_ONCE"])
        if request.url.endswith(self.late) and not mark.exists():
            mark.touch()
            raise Fault("timeout-read", "late")
        return super().send(request)


class UnsentOnce(LateOnce):
    """In the first of its trials the time is over before the server has seen a request that it answers with silence."""

    late: ClassVar = "/13"


class SendsTwiceH2(SoundH2):
    """Each request a second time."""

    def send(self, request):
        super().send(request)
        return super().send(request)


class FallsBack(Urllib3Pool):
    """HTTP/1.1, where it says that it speaks HTTP/2."""

    http = "2"


class PatientH2(SoundH2):
    """Waits for three seconds longer than it may."""

    def open(self):
        self._budget = replace(self._budget, timeout=self._budget.timeout + 3)
        super().open()


class SendsTwice(Urllib3Pool):
    """Each request a second time."""

    def send(self, request):
        super().send(request)
        return super().send(request)


class Skips(Urllib3Pool):
    """Says that it sent what it did not."""

    sent = 0

    def send(self, request):
        self.sent += 1
        return super().send(request) if self.sent % 10 else (200, b'{"ok": true}')


class OtherMethod(Urllib3Pool):
    """PUT for POST, and others for others."""

    methods: ClassVar = {"POST": "PUT", "PUT": "POST", "HEAD": "GET", "DELETE": "GET", "GET": "POST"}

    def send(self, request):
        return super().send(Request(self.methods[request.method], request.url, request.headers, request.body))


class LosesHeaders(Urllib3Pool):
    """None but the library's own."""

    def send(self, request):
        return super().send(Request(request.method, request.url, {}, request.body))


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


class KeepsAll(Urllib3Pool):
    """Connections kept, where it says that each call has its own."""

    policy = "per call"


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


class KeepsMore(Urllib3Pool):
    """A pool of as many as it likes, whatever it is given."""

    def open(self):
        super().open()
        self._manager.connection_pool_kw["maxsize"] = 20


class OpensAnew(Urllib3Pool):
    """One request at a time, on a connection that is then thrown away."""

    def open(self):
        super().open()
        self._turn = threading.Lock()

    def send(self, request):
        with self._turn:
            reply = super().send(request)
            self._manager.clear()
            return reply


class Swallows(Urllib3Pool):
    """Every error is a good answer."""

    def send(self, request):
        try:
            _, body = super().send(request)
        except Exception:  # noqa: BLE001 - what is wrong with it
            body = b""
        return 200, body


class SwallowsH2(SoundH2):
    """The same over HTTP/2."""

    def send(self, request):
        try:
            return super().send(request)
        except Exception:  # noqa: BLE001 - what is wrong with it
            return 200, b""


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


class KnowsNoKinds(Urllib3Pool):
    """No table of errors."""

    errors = ()


class Retries(Urllib3Pool):
    """Sends again what failed."""

    def send(self, request):
        try:
            return super().send(request)
        except Exception:  # noqa: BLE001 - what is wrong with it
            return super().send(request)


class Follows(Urllib3Pool):
    """Goes where it is redirected to."""

    def send(self, request):
        response = self._manager.request(request.method, request.url, headers=request.headers, body=request.body)
        if location := response.headers.get("location"):
            there = "/".join([*request.url.split("/")[:3], location.lstrip("/")])
            response = self._manager.request("GET", there, headers=request.headers)
        return response.status, response.data


class IsPatient(Urllib3Pool):
    """Waits for three seconds longer than it may."""

    def open(self):
        super().open()
        self._manager.connection_pool_kw["timeout"] = self._budget.timeout + 3


class ReusesSpoiled(HttpClient):
    """Goes on with a connection that had a fault."""

    def send(self, request):
        connection = self._connection_to(request)
        connection.request(request.method, "/" + request.url.split("/", 3)[3], request.body, request.headers)
        response = connection.getresponse()
        return response.status, response.read()

    def _connection_to(self, request):
        made = getattr(self._of_thread, "kept", None)
        if made is None:
            made = http.client.HTTPConnection(request.url.split("/")[2], timeout=self._timeout)
            self._of_thread.kept = made
            self._all.append(made)
        return made


class Raises(Urllib3Pool):
    """Its own mistake, before the first request."""

    def open(self):
        raise Fault("other", Path(__file__).name + " can't be opened")


class HoldsEvents(Urllib3Pool):
    """Hands a stream over when it has ended."""

    def events(self, request, sink):
        pieces = []
        status = super().events(request, _Sink(sink.answered, pieces.append))
        for piece in pieces:
            sink(piece)
        return status


class LosesEvents(Urllib3Pool):
    """The second event of a stream in place of the first."""

    def events(self, request, sink):
        first = []

        def take(piece):
            if first and b"@000001" in piece:
                sink(piece)
            if b"@000000" in piece:
                first.append(piece)
            else:
                sink(piece)

        return super().events(request, _Sink(sink.answered, take))


class ForgivesCuts(Urllib3Pool):
    """A stream that is cut is a whole one, and so is one that holds an error."""

    def events(self, request, sink):
        count = [0]

        def take(piece):
            count[0] += b"@" in piece
            with contextlib.suppress(Fault):
                sink(piece)

        try:
            status = super().events(request, _Sink(sink.answered, take))
        except Exception:  # noqa: BLE001 - what is wrong with it
            status = 200
        for number in range(count[0], 5):
            sink(b"@%06d%024d" % (number, 0))
        return status


class ReadsOn(Urllib3Pool):
    """Keeps the connection of a stream that is left."""

    def events(self, request, sink):
        manager = urllib3.PoolManager()
        response = manager.request(request.method, request.url, headers=request.headers, preload_content=False)
        chunks = response.stream()
        self.held = [*getattr(self, "held", []), manager, chunks]
        sink.answered(response.status)
        for chunk in chunks:
            sink(chunk)
        return response.status


class SendsStreamsTwice(Urllib3Pool):
    """Each stream a second time."""

    def events(self, request, sink):
        super().events(request, _Sink(lambda _status: None, lambda _piece: None))
        return super().events(request, sink)


class AddsHeaders(Urllib3Pool):
    """A header of its own with each stream."""

    def events(self, request, sink):
        return super().events(replace_headers(request, {**request.headers, "x-own": "yes"}), sink)


def replace_headers(request, headers):
    """The request with other headers."""
    return Request(request.method, request.url, headers, request.body, request.stream)


class KeepsSlots(AiohttpSession):
    """It does not give back the slot of a request that is cancelled."""

    async def open(self):
        await super().open()
        self._slots = asyncio.Semaphore(self._budget.connections)

    async def send(self, request):
        await self._slots.acquire()
        answer = await super().send(request)
        self._slots.release()
        return answer


class EndsLate(AiohttpSession):
    """It finishes a request that is cancelled, and only then ends."""

    async def send(self, request):
        task = asyncio.create_task(super().send(request))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            return await task


class _Sink:
    """A sink of two functions."""

    def __init__(self, answered, take):
        self.answered = answered
        self._take = take

    def __call__(self, piece):
        self._take(piece)
