"""An aiohttp handler with nothing around it: what the upstream is measured against."""

from __future__ import annotations

from aiohttp import web

BODY = b'{"message": "hello"}\n'


async def root(_request: web.Request) -> web.Response:
    """A small JSON document, ready made."""
    return web.Response(body=BODY, content_type="application/json")


async def application() -> web.Application:
    """What gunicorn serves."""
    app = web.Application()
    app.router.add_get("/", root)
    app.router.add_get("/status/200", root)
    return app
