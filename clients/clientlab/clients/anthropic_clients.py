"""The SDK of Anthropic, blocking, asyncio, or asyncio on aiohttp (its extra): one client. They only read streams.

A stream is read as the SDK's users do: they iterate over its events, and take the text of each.
"""

from __future__ import annotations

from json import JSONDecodeError
from typing import Any, ClassVar

import anthropic
import anthropic.resources.messages  # the SDK would import it in the first request
import httpx2
from httpx_aiohttp.httpx2 import AiohttpTransport

from clientlab.clients.aiohttp_clients import AIOHTTP_ERRORS
from clientlab.clients.aiohttp_transport import on_aiohttp
from clientlab.clients.client_interface import EventSink, Pieces
from clientlab.clients.httpx_family import OneAsyncClient, OneClient, errors_of
from clientlab.clients.sdk_call import Calls
from clientlab.errors import ErrorTable
from clientlab.workload.workload import Request

_PATHS = ("/v1/messages",)

_ERRORS: ErrorTable = (
    *errors_of(httpx2),
    (anthropic.APIResponseValidationError, "protocol"),
    (JSONDecodeError, "protocol"),
    (anthropic.APIConnectionError, "connect"),
    (anthropic.APIError, "event-error"),
)


class AnthropicSdk(OneClient):
    """One `anthropic.Anthropic`, shared by all threads of the process."""

    pieces: ClassVar[Pieces] = "events"
    library: ClassVar[Any] = httpx2
    errors = _ERRORS

    def open(self) -> None:
        self._client = self.made(anthropic.DefaultHttpxClient, None, follow_redirects=False)
        self._calls = Calls(_PATHS, self._sdk)

    def events(self, request: Request, sink: EventSink) -> int:
        sdk, _, arguments = self._calls.call(request)
        try:
            stream = sdk.messages.create(**arguments, extra_headers=request.headers)
        except anthropic.APIStatusError as error:
            sink.answered(error.status_code)
            return error.status_code
        with stream:
            sink.answered(stream.response.status_code)
            for event in stream:
                if event.type == "content_block_delta" and event.delta.type == "text_delta":
                    sink(event.delta.text)
            return int(stream.response.status_code)

    def _sdk(self, base_url: str) -> anthropic.Anthropic:
        return anthropic.Anthropic(**options(base_url, self._budget.timeout), http_client=self._client)


class AnthropicAsync(OneAsyncClient):
    """One `anthropic.AsyncAnthropic` for the event loop."""

    pieces: ClassVar[Pieces] = "events"
    library: ClassVar[Any] = httpx2
    errors = _ERRORS

    async def open(self) -> None:
        self._client = self.made(anthropic.DefaultAsyncHttpxClient, None, follow_redirects=False)
        self._calls = Calls(_PATHS, self._sdk)

    async def events(self, request: Request, sink: EventSink) -> int:
        sdk, _, arguments = self._calls.call(request)
        try:
            stream = await sdk.messages.create(**arguments, extra_headers=request.headers)
        except anthropic.APIStatusError as error:
            sink.answered(error.status_code)
            return error.status_code
        async with stream:
            sink.answered(stream.response.status_code)
            async for event in stream:
                if event.type == "content_block_delta" and event.delta.type == "text_delta":
                    sink(event.delta.text)
            return int(stream.response.status_code)

    def _sdk(self, base_url: str) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(**options(base_url, self._budget.timeout), http_client=self._client)


class AnthropicAiohttp(AnthropicAsync):
    """One `anthropic.AsyncAnthropic` for the event loop, on aiohttp."""

    errors = (*AIOHTTP_ERRORS, *_ERRORS)

    async def open(self) -> None:
        transport = on_aiohttp(self, AiohttpTransport, self._budget)
        self._client = self.made(anthropic.DefaultAioHttpClient, None, follow_redirects=False, transport=transport)
        self._calls = Calls(_PATHS, self._sdk)


def options(base_url: str, seconds: float) -> dict[str, Any]:
    """The arguments of the SDK's client: no retries, no OpenTelemetry, and the lab's time limit."""
    timeout = httpx2.Timeout(seconds, pool=None)
    telemetry = {"traces": {"enabled": False}, "propagation": False}
    base: dict[str, Any] = {"api_key": "none", "base_url": base_url, "max_retries": 0, "timeout": timeout}
    return {**base, "open_telemetry": telemetry}
