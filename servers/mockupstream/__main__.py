"""Each framework's development server: `python -m mockupstream flask|aiohttp [--host] [--port] [--fd]`."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from typing import TYPE_CHECKING

from mockupstream.ledger import Book
from mockupstream.metrics import Exposition, UpstreamCollector
from mockupstream.settings import Settings, or_exit, raise_open_files, read_settings

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(words: Sequence[str]) -> None:
    """Serve until interrupted or terminated; exit with 2 where the words or the environment are wrong."""
    parser = argparse.ArgumentParser(prog="python -m mockupstream", description=__doc__)
    parser.add_argument("framework", choices=("flask", "aiohttp"))
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--fd", type=int, help="an inherited socket that is bound already, instead of host and port")
    asked = parser.parse_args(words)
    settings = or_exit(read_settings, os.environ)
    raise_open_files()
    serve = serve_flask if asked.framework == "flask" else serve_aiohttp
    serve(settings, asked.host, asked.port, asked.fd)


def serve_flask(settings: Settings, host: str, port: int, fd: int | None) -> None:
    """Serve as `flask run` does: werkzeug's server, a thread for each connection."""
    from werkzeug.serving import make_server  # noqa: PLC0415 - an image has only one of the two frameworks

    from mockupstream import flask_app  # noqa: PLC0415

    book = Book()
    exposition = Exposition(UpstreamCollector(book, "flask", "development"))
    app = flask_app.build(settings, book.open(0), exposition)
    server = make_server(host, port, app, threaded=True, fd=fd)
    server.log_startup()
    server.serve_forever()


def serve_aiohttp(settings: Settings, host: str, port: int, fd: int | None) -> None:
    """Serve with aiohttp's `run_app` on asyncio's own event loop."""
    from aiohttp import web  # noqa: PLC0415

    from mockupstream import aiohttp_app  # noqa: PLC0415

    book = Book()
    exposition = Exposition(UpstreamCollector(book, "aiohttp", "development"))
    app = aiohttp_app.build(settings, book.open(0), exposition)
    if fd is None:
        web.run_app(app, host=host, port=port, auto_decompress=False)
    else:
        web.run_app(app, sock=socket.socket(fileno=fd), auto_decompress=False)


if __name__ == "__main__":
    main(sys.argv[1:])
