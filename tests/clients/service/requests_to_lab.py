"""A service of its own for a test, and what is asked of it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import httpx

from clientlab.results.plan import Plan
from clientlab.results.store import Store
from clientlab.service.lab import Lab, LabSettings
from clientlab.service.middleware import known_hosts
from clientlab.service.page_key import PageKey
from clientlab.service.recruiter import Bounds
from clientlab.service.server import application

TOKEN = "of the test"  # noqa: S105 - as it says
BEARER = {"Authorization": f"Bearer {TOKEN}"}
KEY = PageKey("the key of the test's page", own=False)
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
HOSTS = known_hosts("", "")
ASSIGNMENT_REQUEST = {"worker": "a" * 16, "host": "here", "strategies": ["urllib3"]}


def keep(store: Store, run) -> None:
    """Put a run into the store."""
    store.claim(run.run)
    store.save(run)


def begin(store: Store, token: str = TOKEN, first: Plan | None = None) -> Lab:
    """A lab in the running event loop."""
    return Lab.begin(LabSettings(store.folder, token, KEY, "http://grafana.test/", first, {}, Bounds(30.0, 0.1, 30.0)))


def form(**fields: str) -> dict[str, dict[str, str]]:
    """What a browser sends with a form of the page: its origin, and the key beside the fields."""
    return {"headers": SAME_ORIGIN, "data": {"key": KEY.text, **fields}}


@asynccontextmanager
async def serving(store: Store, token: str = TOKEN, first: Plan | None = None):
    """A service, and a client that calls it without sockets."""
    lab = begin(store, token, first)
    transport = httpx.ASGITransport(application(lab, HOSTS))
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
