"""The worker's two pages, `/metrics` and `/healthz`, on a socket that its processes hand on to each other.

One connection at a time, closed after its answer: whoever serves next finds none of it half done.
"""

from __future__ import annotations

import http.server
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import ClassVar

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE = 2.0  # seconds for a reader that is slow
_PROMPT = 0.5
"""Seconds: Prometheus gives up on a page after a second, its way there included."""


class Pages:
    """Serves in a thread of its own. `metrics` is called for each scrape.

    `scrapes` counts those begun; `last_began` is when the last one that was answered whole began, monotonic.
    """

    def __init__(self, listener: socket.socket, metrics: Callable[[], bytes]) -> None:
        self.scrapes = 0
        self.last_began = 0.0
        self._listener = listener
        self._metrics = metrics
        self._wake, self._waker = os.pipe()
        self._scraped = threading.Condition()
        self._thread = threading.Thread(target=self._serve, name="pages", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Answer who is being answered, and nobody else."""
        os.write(self._waker, b".")
        self._thread.join()
        os.close(self._wake)
        os.close(self._waker)

    def wait_for_scrape(self, since: float, seconds: float) -> bool:
        """Whether within `seconds` a scrape was answered that began after `since`."""
        with self._scraped:
            return self._scraped.wait_for(lambda: self.last_began > since, seconds)

    def _serve(self) -> None:
        handler = _handler(self)
        self._listener.setblocking(False)  # another process may have been quicker
        while True:
            ready = select.select([self._listener.fileno(), self._wake], [], [])[0]
            if self._wake in ready:
                return
            try:
                connection, peer = self._listener.accept()
            except OSError:
                continue  # taken by another process, or given up by its sender
            with connection:
                connection.settimeout(_PATIENCE)
                try:
                    handler(connection, peer, None)  # type: ignore[arg-type]
                except OSError:
                    continue  # the reader is gone

    def answer(self, path: str) -> tuple[int, bytes]:
        """Status and text of a page."""
        if path == "/healthz":
            return 200, b"ok\n"
        if path != "/metrics":
            return 404, b"there are /metrics and /healthz\n"
        self.scrapes += 1
        try:
            return 200, self._metrics()
        except Exception as error:  # noqa: BLE001 - the reader is told, and the page goes on
            return 500, f"{type(error).__name__}: {error}\n".encode()

    def answered(self, path: str, began: float) -> None:
        """Note a page that was sent whole, and so soon that its reader has waited for it."""
        if path == "/metrics" and time.monotonic() - began < _PROMPT:
            with self._scraped:
                self.last_began = began
                self._scraped.notify_all()


def _handler(pages: Pages) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        timeout: ClassVar[float] = _PATIENCE
        server_version = "clientlab"
        sys_version = ""

        def do_GET(self) -> None:
            began, path = time.monotonic(), self.path.partition("?")[0]
            status, content = pages.answer(path)
            self.send_response(status)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()
            if status == 200:
                pages.answered(path, began)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """A scrape a second is no news."""

    return Handler
