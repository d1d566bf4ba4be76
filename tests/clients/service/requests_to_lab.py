"""A service of its own for a test, and what is asked of it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import httpx

from clientlab.results.plan import Plan
from clientlab.results.store import Store
from clientlab.service.lab import Lab, LabSettings
from clientlab.service.recruiter import Bounds
from clientlab.service.server import application

TOKEN = "of the test"  # noqa: S105 - as it says
BEARER = {"Authorization": f"Bearer {TOKEN}"}
ASSIGNMENT_REQUEST = {"worker": "a" * 16, "host": "here", "strategies": ["urllib3"]}


def keep(store: Store, run) -> None:
    """Put a run into the store."""
    store.claim(run.run)
    store.save(run)


def begin(store: Store, token: str = TOKEN, first: Plan | None = None) -> Lab:
    """A lab in the running event loop."""
    return Lab.begin(LabSettings(store.folder, token, first, {}, Bounds(30.0, 0.1, 30.0)))


@asynccontextmanager
async def serving(store: Store, token: str = TOKEN, first: Plan | None = None):
    """A service, and a client that calls it without sockets."""
    lab = begin(store, token, first)
    transport = httpx.ASGITransport(application(lab))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client
    finally:
        await lab.run_manager.shut_down()


def asked(store: Store, method: str, path: str, **request):
    """Status, text and headers of one request to a service of its own."""

    async def go():
        async with serving(store) as client:
            got = await client.request(method, path, **request)
            return got.status_code, got.text, got.headers

    return asyncio.run(go())
