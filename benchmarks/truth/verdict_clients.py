"""Clients of a user's own file for the verdict's cases: with a lock, with stalls, and with work outside the GIL."""

from __future__ import annotations

import hashlib
import threading
import time

from clientlab.clients.client_interface import Budget, Opened, StatusAndBody
from clientlab.clients.http_client import HttpClient
from clientlab.workload.workload import Request

_HASHED = bytes(1_300_000)  # about a millisecond of SHA-1


_SUMMED = 150_000  # some milliseconds of Python


class Locked(HttpClient):
    """A connection for each thread, and one lock for all of them."""

    policy = "per thread"

    def __init__(self, budget: Budget, opened: Opened) -> None:
        super().__init__(budget, opened)
        self._lock = threading.Lock()

    def send(self, request: Request) -> StatusAndBody:
        with self._lock:
            return super().send(request)


class Native(HttpClient):
    """Spends CPU time outside the GIL in each request, as a library in C does."""

    policy = "per thread"
    native = True

    def send(self, request: Request) -> StatusAndBody:
        reply = super().send(request)
        hashlib.sha1(_HASHED, usedforsecurity=False).digest()
        return reply


class Stalled(HttpClient):
    """Waits 40 ms before each request for nothing that the lab knows, as for Nagle's algorithm or DNS."""

    policy = "per thread"

    def send(self, request: Request) -> StatusAndBody:
        time.sleep(0.04)
        return super().send(request)


class Half(HttpClient):
    """Spends a sixth of its CPU time outside the GIL without a word about it: threads use more than a core."""

    policy = "per thread"

    def send(self, request: Request) -> StatusAndBody:
        reply = super().send(request)
        hashlib.sha1(_HASHED, usedforsecurity=False).digest()
        sum(range(_SUMMED))
        return reply
