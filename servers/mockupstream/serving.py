"""The functions that gunicorn calls: hooks of its configuration, applications, and the aiohttp worker."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from mockupstream import settings as reading
from mockupstream.ledger import Book, Ledger
from mockupstream.metrics import UpstreamCollector

if TYPE_CHECKING:
    from aiohttp import web
    from flask import Flask

_SILENT_SECONDS = 60
"""The kernel holds back a connection without a byte for about this time (tcp(7), TCP_DEFER_ACCEPT)."""


class _Place:
    """The book of all workers, made by the master, and the number of this one."""

    book: Book
    number: int


def on_starting(_server: Any) -> None:
    """In the master, before any worker: open a fresh book."""
    _Place.book = Book()


def post_fork(_server: Any, worker: Any) -> None:
    """In a worker: store its number. gunicorn calls it age; it starts at 1 and is never reused."""
    _Place.number = worker.age - 1
    if reading.or_exit(reading.read_serving, os.environ).framework == "flask":
        for listener in worker.sockets:
            if hasattr(socket, "TCP_DEFER_ACCEPT"):  # or a connection that is opened ahead of its use holds a thread
                listener.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _SILENT_SECONDS)
            listener.sock.listen(worker.cfg.backlog)  # gunicorn keeps the backlog of a socket that it inherits


def child_exit(_server: Any, worker: Any) -> None:
    """In the master: record the end of a worker that was reaped."""
    _Place.book.close(worker.age - 1)


def flask_application() -> Flask:
    """Return the Flask application of this worker."""
    from mockupstream import flask_app  # noqa: PLC0415 - an image has only one of the two frameworks

    settings = reading.or_exit(reading.read_settings, os.environ)
    serving = reading.or_exit(reading.read_serving, os.environ)
    threads = serving.threads if serving.worker_class == "gthread" else 1
    return flask_app.build(settings, *_counting("flask", threads))


async def aiohttp_runner() -> web.AppRunner:
    """Return the aiohttp application of this worker in a runner of its own.

    The worker's would unpack compressed request bodies, and count other bytes than Flask does.
    """
    from mockupstream import aiohttp_app  # noqa: PLC0415 - an image has only one of the two frameworks

    settings = reading.or_exit(reading.read_settings, os.environ)
    serving = reading.or_exit(reading.read_serving, os.environ)
    return aiohttp_app.Runner(
        *aiohttp_app.build(settings, *_counting("aiohttp")),
        keepalive_timeout=serving.keep_alive,
        access_log=None,
        auto_decompress=False,
        # Shortly before gunicorn would kill the worker.
        shutdown_timeout=serving.graceful_timeout * 0.9,
    )


def _counting(framework: str, threads: int | None = None) -> tuple[Ledger, UpstreamCollector]:
    book = _Place.book
    return book.open(_Place.number), UpstreamCollector(book, framework, "gunicorn", threads)
