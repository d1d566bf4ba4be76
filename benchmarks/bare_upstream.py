"""An aiohttp handler with nothing around it: what the upstream is measured against."""

from __future__ import annotations

import asyncio
import os
import socket
import sys

from aiohttp import web

BODY = b'{"message": "hello"}\n'
DELAY = 0.05
"""Seconds before the response of ``/delayed``."""


async def root(_request: web.Request) -> web.Response:
    """A small JSON document, ready made."""
    return web.Response(body=BODY, content_type="application/json")


async def delayed(request: web.Request) -> web.Response:
    """The same document after the delay."""
    await asyncio.sleep(DELAY)
    return await root(request)


async def application() -> web.Application:
    """What gunicorn serves."""
    app = web.Application()
    app.router.add_get("/", root)
    app.router.add_get("/status/200", root)
    app.router.add_get("/delayed", delayed)
    return app


def main(arguments: list[str]) -> None:
    """Serve in one process until it is killed. The file descriptor gets a line with the port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    os.write(int(arguments[0]), f"{listener.getsockname()[1]}\n".encode())
    web.run_app(application(), sock=listener, print=None, access_log=None)


if __name__ == "__main__":
    main(sys.argv[1:])
