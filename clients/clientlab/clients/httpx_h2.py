"""httpx over HTTP/2, blocking and asyncio: one connection carries all requests in flight."""

from __future__ import annotations

import h2  # noqa: F401 - httpx looks for h2 when a client is made; the lab has to know before
import httpx

from clientlab.clients.httpx_async import HttpxAsync
from clientlab.clients.httpx_client import HttpxClient, timeout_of
from clientlab.clients.no_cookies import empty_jar
from clientlab.clients.tls_context import tls_context
from clientlab.errors import Fault


class HttpxClientH2(HttpxClient):
    """One client, shared by all threads of the process."""

    def open(self) -> None:
        self._client = httpx.Client(
            http2=True,
            verify=tls_context(self._budget) or True,
            limits=self._limits,
            timeout=timeout_of(self._budget),
            cookies=empty_jar(),
            event_hooks={"response": [check_version]},
        )


class HttpxAsyncH2(HttpxAsync):
    """One client for the event loop."""

    async def open(self) -> None:
        self._client = httpx.AsyncClient(
            http2=True,
            verify=tls_context(self._budget) or True,
            limits=self._limits,
            timeout=timeout_of(self._budget),
            cookies=empty_jar(),
            event_hooks={"response": [acheck_version]},
        )


def check_version(response: httpx.Response) -> None:
    """Raise Fault if the response is not HTTP/2: httpx falls back to HTTP/1.1 silently."""
    if response.extensions["http_version"] != b"HTTP/2":
        raise Fault("protocol", f"the server spoke {response.http_version} where HTTP/2 was asked for")


async def acheck_version(response: httpx.Response) -> None:
    """`check_version` as an asyncio hook."""
    check_version(response)
