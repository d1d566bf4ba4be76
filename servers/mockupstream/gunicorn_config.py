"""gunicorn's configuration for both upstreams: `gunicorn -c
python:mockupstream.gunicorn_config`.

The names below are gunicorn's settings, from environment variables
(`MOCKUPSTREAM_WORKERS=8`), its hooks, and the functions that make an application in
each worker. Behaviour and limits of requests are in mockupstream/settings.py.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mockupstream.faults import FaultBook
from mockupstream.metrics import Book, Ledger, UpstreamCollector
from mockupstream.settings import (
    Value,
    between,
    one_of,
    or_exit,
    raise_open_files,
    read_settings,
    read_variable,
)

if TYPE_CHECKING:
    from aiohttp import web
    from flask import Flask


def _read(name: str, default: str, convert: Callable[[str], Value]) -> Value:
    return or_exit(
        lambda environment: read_variable(environment, name, default, convert),
        os.environ,
    )


# All variables are read here, so that no worker starts if one is wrong.
_SETTINGS = or_exit(read_settings, os.environ)
_FRAMEWORK = _read("FRAMEWORK", "aiohttp", one_of("flask", "aiohttp"))
_SILENT_SECONDS = 60
"""The kernel holds back a connection without a byte for about this time (tcp(7),
TCP_DEFER_ACCEPT).
"""
raise_open_files()

bind = _read("BIND", "127.0.0.1:8000", str)  # or fd://N for an inherited socket
workers = _read("WORKERS", "4", between(1, 256))  # processes
threads = _read("THREADS", "25", between(1, 4096))  # of each Flask process
worker_class = _read(
    "WORKER_CLASS", "gthread", one_of("gthread", "sync")
)  # of Flask; sync closes each connection
# The proxy keeps idle connections for 60 s. With a shorter time here, it would send
# requests on closing ones.
keepalive = _read("KEEP_ALIVE", "75", between(1, 86_400))
max_requests = _read(
    "MAX_REQUESTS", "0", between(0, 1_000_000)
)  # then a worker is replaced; 0: never
backlog = _read(
    "BACKLOG", "2048", between(1, 65_535)
)  # connections that wait to be accepted
graceful_timeout = _read(
    "GRACEFUL_TIMEOUT", "3", between(1, 3600)
)  # seconds for requests in flight at the end

if _FRAMEWORK == "flask":
    wsgi_app = "mockupstream.gunicorn_config:make_flask_application()"
    # gunicorn's default worker, sync, has no keep-alive. With more than one thread,
    # gunicorn quietly takes gthread.
    threads = threads if worker_class == "gthread" else 1
    worker_connections = (
        16_384  # including idle ones; the default of 1,000 would close those above
    )
else:
    wsgi_app = "mockupstream.gunicorn_config:make_aiohttp_runner"
    worker_class = "mockupstream.aiohttp_app.UpstreamWorker"
    threads = 1

accesslog = None  # a line per request would be a good part of its cost
control_socket_disable = True


class _Place:
    """The books of all workers, made by the master, and the number of this worker's
    page.
    """

    book: Book
    faults: FaultBook
    number: int


def on_starting(_server: Any) -> None:
    """In the master, before any worker: open new books."""
    _Place.book = Book()
    _Place.faults = FaultBook(_SETTINGS.most_delay.value)


def pre_fork(_server: Any, worker: Any) -> None:
    """In the master: give a new worker a page.

    One that replaces another gets the page of that one.
    """
    worker.page_number = _Place.book.reserve()


def post_fork(_server: Any, worker: Any) -> None:
    """In a worker: store the number of its page, and set up its sockets."""
    _Place.number = worker.page_number
    if _FRAMEWORK == "flask":
        for listener in worker.sockets:
            if hasattr(
                socket, "TCP_DEFER_ACCEPT"
            ):  # otherwise, a connection opened ahead of its use holds a thread
                listener.sock.setsockopt(
                    socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, _SILENT_SECONDS
                )
            listener.sock.listen(
                worker.cfg.backlog
            )  # gunicorn keeps the backlog of a socket that it inherits


def child_exit(_server: Any, worker: Any) -> None:
    """In the master: record the end of a worker that was reaped."""
    _Place.book.close(worker.page_number)


def make_flask_application() -> Flask:
    """Return the Flask application of this worker."""
    from mockupstream import flask_app  # noqa: PLC0415 - an image has only one of the two frameworks

    return flask_app.build(_SETTINGS, *_open_books(threads))


async def make_aiohttp_runner() -> web.AppRunner:
    """Return the aiohttp application of this worker, with a runner.

    The worker's own runner would decompress request bodies, and count other bytes than
    Flask does.
    """
    from mockupstream import aiohttp_app  # noqa: PLC0415 - an image has only one of the two frameworks

    return aiohttp_app.Runner(
        *aiohttp_app.build(_SETTINGS, *_open_books(None)),
        trace=_SETTINGS.trace,
        keepalive_timeout=keepalive,
        access_log=None,
        auto_decompress=False,
        shutdown_timeout=graceful_timeout
        * 0.9,  # shortly before gunicorn would kill the worker
    )


def _open_books(
    slots: int | None,
) -> tuple[Ledger, UpstreamCollector, FaultBook]:
    book = _Place.book
    exposition = UpstreamCollector(book, _FRAMEWORK, "gunicorn", slots)
    return book.open(_Place.number), exposition, _Place.faults
