"""httpx over HTTP/2: one connection for all requests in flight, blocking and for asyncio."""

from __future__ import annotations

import h2  # noqa: F401 - httpx[http2] looks for it when a client is made, which is too late to say so
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
    """One client for the loop."""

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
    """Raises Fault for an answer that is not HTTP/2: httpx falls back to HTTP/1.1 without a word."""
    if response.extensions["http_version"] != b"HTTP/2":
        raise Fault("protocol", f"the server spoke {response.http_version} where HTTP/2 was asked for")


async def acheck_version(response: httpx.Response) -> None:
    """The same for asyncio."""
    check_version(response)
