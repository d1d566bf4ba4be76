"""A server of the user's own, in one process: it spends two milliseconds of CPU time on each request.

It prints its port. The lab reads no counters from it.
"""

from __future__ import annotations

import socket
import time

from aiohttp import web

_SECONDS = 0.002


async def _answer(_request: web.Request) -> web.Response:
    until = time.process_time() + _SECONDS
    while time.process_time() < until:
        pass
    return web.Response(text="ok")


def main() -> None:
    """Serve on a free port until the process is killed."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    print(listener.getsockname()[1], flush=True)
    app = web.Application()
    app.router.add_get("/", _answer)
    web.run_app(app, sock=listener, print=None, access_log=None)


if __name__ == "__main__":
    main()
