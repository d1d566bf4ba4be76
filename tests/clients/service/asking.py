"""A service of its own for a test, and what is asked of it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from aiohttp.test_utils import TestClient, TestServer

from clientlab.runs.store import Store
from clientlab.service.app import Settings, application
from clientlab.service.turns import Bounds

TOKEN = "of the test"  # noqa: S105 - as it says
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
ASKING = {"worker": "a" * 16, "host": "here", "strategies": ["urllib3"]}


def keep(store: Store, run) -> None:
    """Put a run into the store."""
    store.claim(run.run)
    store.save(run)


@asynccontextmanager
async def serving(store: Store, token: str = TOKEN, patience: float = 30.0):
    """The service on a free port, and a client for it."""
    settings = Settings(store.folder, token, "http://grafana.test/", None, {}, Bounds(patience, 0.1, 30.0))
    async with TestClient(TestServer(application(settings))) as client:
        yield client


def asked(store: Store, method: str, path: str, token: str = TOKEN, **request):
    """Status, text and headers of one request to a service of its own."""

    async def go():
        async with (
            serving(store, token) as client,
            client.request(method, path, allow_redirects=False, **request) as got,
        ):
            return got.status, await got.text(), got.headers

    return asyncio.run(go())
