"""The functions that gunicorn calls: hooks of its configuration, applications, and the aiohttp worker."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

from mockupstream import settings as reading
from mockupstream.ledger import Book, Ledger
from mockupstream.metrics import Exposition, UpstreamCollector
from mockupstream.rate_limit import RateLimit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web
    from flask import Flask


def new_book(environment: Mapping[str, str]) -> Book:
    """Return a fresh book, with the limit of requests per second that the environment sets."""
    found = reading.or_exit(reading.read_limit, environment)
    return Book(None if found.rate is None else RateLimit(found.rate, found.burst))


class _Place:
    """This process among the workers: the book of all workers, made by the master, and the number of this one."""

    book: Book
    number: int


def on_starting(_server: Any) -> None:
    """In the master, before any worker: open a fresh book."""
    _Place.book = new_book(os.environ)


def post_fork(_server: Any, worker: Any) -> None:
    """In a worker: store its number. gunicorn calls it age; it starts at 1 and is never reused."""
    _Place.number = worker.age - 1
    if reading.or_exit(reading.read_serving, os.environ).framework == "flask":
        from mockupstream.flask_worker import limit_reading  # noqa: PLC0415 - an image has only one of the two

        seconds = reading.or_exit(reading.read_settings, os.environ).read_timeout
        limit_reading([listener.sock for listener in worker.sockets], seconds, worker.cfg.backlog)


def child_exit(_server: Any, worker: Any) -> None:
    """In the master: record the end of a worker that was reaped."""
    _Place.book.close(worker.age - 1)


def flask_application() -> Flask:
    """Return the Flask application of this worker."""
    from mockupstream import flask_app  # noqa: PLC0415 - an image has only one of the two frameworks

    settings = reading.or_exit(reading.read_settings, os.environ)
    serving = reading.or_exit(reading.read_serving, os.environ)
    threads = serving.threads if serving.worker_class == "gthread" else 1
    app = flask_app.build(settings, *_counting("flask", threads))
    _keep_for_good()
    return app


async def aiohttp_runner() -> web.AppRunner:
    """Return the aiohttp application of this worker in a runner of its own.

    Not the worker's, because that one would unpack compressed request bodies, and count other bytes than Flask does.
    """
    from mockupstream import aiohttp_app  # noqa: PLC0415 - an image has only one of the two frameworks

    settings = reading.or_exit(reading.read_settings, os.environ)
    serving = reading.or_exit(reading.read_serving, os.environ)
    runner = aiohttp_app.runner(
        settings,
        *_counting("aiohttp"),
        keepalive_timeout=serving.keep_alive,
        access_log=None,
        auto_decompress=False,
        # Shortly before gunicorn would kill the worker.
        shutdown_timeout=serving.graceful_timeout * 0.9,
    )
    _keep_for_good()
    return runner


def _keep_for_good() -> None:
    """Take all that is loaded out of the garbage collector's sight.

    A full collection would look at all of it, for milliseconds in which every event of a stream is late.
    """
    gc.collect()
    gc.freeze()


def _counting(framework: str, threads: int | None = None) -> tuple[Ledger, Exposition]:
    book = _Place.book
    return book.open(_Place.number), Exposition(UpstreamCollector(book, framework, "gunicorn", threads))
