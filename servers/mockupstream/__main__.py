"""Each framework's development server: `python -m mockupstream flask|aiohttp [--host]
[--port] [--fd]`.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Sequence

from mockupstream.faults import FaultBook
from mockupstream.metrics import Book, UpstreamCollector
from mockupstream.settings import or_exit, raise_open_files, read_settings
from mockupstream.trace import Trace


def main(words: Sequence[str]) -> None:
    """Serve until interrupted or terminated.

    Exit with 2 if the words or the environment are wrong.

    Flask runs as in `flask run`: werkzeug's server, with a thread per connection.
    aiohttp runs in its `run_app` on asyncio's own event loop.
    """
    parser = argparse.ArgumentParser(prog="python -m mockupstream", description=__doc__)
    parser.add_argument("framework", choices=("flask", "aiohttp"))
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--fd",
        type=int,
        help="an inherited socket that is bound already, instead of host and port",
    )
    asked = parser.parse_args(words)
    settings = or_exit(read_settings, os.environ)
    raise_open_files()
    book = Book()
    exposition = UpstreamCollector(book, asked.framework, "development")
    faults = FaultBook(settings.most_delay.value)
    counting = book.open(0), exposition, faults
    if asked.framework == "flask":
        from werkzeug.serving import make_server  # noqa: PLC0415 - an image has only one of the two frameworks

        from mockupstream import flask_app  # noqa: PLC0415

        app = flask_app.build(settings, *counting)
        server = make_server(asked.host, asked.port, app, threaded=True, fd=asked.fd)
        server.log_startup()
        server.serve_forever()
    else:
        from aiohttp import web  # noqa: PLC0415

        from mockupstream import aiohttp_app  # noqa: PLC0415

        application, _ = aiohttp_app.build(settings, *counting)
        if settings.trace is not None:
            application.middlewares.append(Trace(settings.trace).middleware())
        listener = (
            socket.create_server((asked.host, asked.port))
            if asked.fd is None
            else socket.socket(fileno=asked.fd)
        )
        web.run_app(application, sock=listener, auto_decompress=False)


if __name__ == "__main__":
    main(sys.argv[1:])
