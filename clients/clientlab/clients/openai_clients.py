"""The SDK of OpenAI, blocking, asyncio, or asyncio on aiohttp (its extra): one client. They only read streams.

A stream is read as the SDK's users do: they iterate over its events, and take the text of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from json import JSONDecodeError
from typing import Any, ClassVar

import httpx2
import openai
import openai.resources.chat.completions  # the SDK would import it in the first request
import openai.resources.responses  # likewise
from httpx_aiohttp.httpx2 import AiohttpTransport

from clientlab.clients.aiohttp_clients import AIOHTTP_ERRORS
from clientlab.clients.aiohttp_transport import on_aiohttp
from clientlab.clients.client_interface import EventSink, Pieces
from clientlab.clients.httpx_family import OneAsyncClient, OneClient, errors_of
from clientlab.clients.sdk_call import Calls
from clientlab.errors import ErrorTable, Fault
from clientlab.workload.workload import Request

_CHAT, _RESPONSES = "/chat/completions", "/responses"
_FAILED = frozenset({"error", "response.failed"})

_ERRORS: ErrorTable = (
    *errors_of(httpx2),
    (openai.APIResponseValidationError, "protocol"),
    (JSONDecodeError, "protocol"),
    (openai.APIConnectionError, "connect"),
    (openai.APIError, "event-error"),
)


class OpenaiSdk(OneClient):
    """One `openai.OpenAI`, shared by all threads of the process."""

    pieces: ClassVar[Pieces] = "events"
    library: ClassVar[Any] = httpx2
    errors = _ERRORS

    def open(self) -> None:
        self._client = self.made(openai.DefaultHttpxClient, None, follow_redirects=False)
        self._calls = Calls((_CHAT, _RESPONSES), self._sdk)

    def events(self, request: Request, sink: EventSink) -> int:
        sdk, path, arguments = self._calls.call(request)
        create = sdk.chat.completions.create if path == _CHAT else sdk.responses.create
        try:
            stream = create(**arguments, extra_headers=request.headers)
        except openai.APIStatusError as error:
            sink.answered(error.status_code)
            return error.status_code
        with stream:
            sink.answered(stream.response.status_code)
            if path == _CHAT:
                for chunk in stream:
                    for text in text_of_chunk(chunk):
                        sink(text)
            else:
                for event in stream:
                    for text in text_of_event(event):
                        sink(text)
            return int(stream.response.status_code)

    def _sdk(self, base_url: str) -> openai.OpenAI:
        timeout = httpx2.Timeout(self._budget.timeout, pool=None)
        return openai.OpenAI(
            api_key="none", base_url=base_url, timeout=timeout, max_retries=0, http_client=self._client
        )


class OpenaiAsync(OneAsyncClient):
    """One `openai.AsyncOpenAI` for the event loop."""

    pieces: ClassVar[Pieces] = "events"
    library: ClassVar[Any] = httpx2
    errors = _ERRORS

    async def open(self) -> None:
        self._client = self.made(openai.DefaultAsyncHttpxClient, None, follow_redirects=False)
        self._calls = Calls((_CHAT, _RESPONSES), self._sdk)

    async def events(self, request: Request, sink: EventSink) -> int:
        sdk, path, arguments = self._calls.call(request)
        create = sdk.chat.completions.create if path == _CHAT else sdk.responses.create
        try:
            stream = await create(**arguments, extra_headers=request.headers)
        except openai.APIStatusError as error:
            sink.answered(error.status_code)
            return error.status_code
        async with stream:
            sink.answered(stream.response.status_code)
            if path == _CHAT:
                async for chunk in stream:
                    for text in text_of_chunk(chunk):
                        sink(text)
            else:
                async for event in stream:
                    for text in text_of_event(event):
                        sink(text)
            return int(stream.response.status_code)

    def _sdk(self, base_url: str) -> openai.AsyncOpenAI:
        timeout = httpx2.Timeout(self._budget.timeout, pool=None)
        return openai.AsyncOpenAI(
            api_key="none", base_url=base_url, timeout=timeout, max_retries=0, http_client=self._client
        )


class OpenaiAiohttp(OpenaiAsync):
    """One `openai.AsyncOpenAI` for the event loop, on aiohttp."""

    errors = (*AIOHTTP_ERRORS, *_ERRORS)

    async def open(self) -> None:
        transport = on_aiohttp(self, AiohttpTransport, self._budget)
        self._client = self.made(openai.DefaultAioHttpClient, None, follow_redirects=False, transport=transport)
        self._calls = Calls((_CHAT, _RESPONSES), self._sdk)


def text_of_chunk(chunk: Any) -> Iterator[str]:
    """The text of a chunk of chat completions, if it has one."""
    if chunk.choices and (text := chunk.choices[0].delta.content):
        yield text


def text_of_event(event: Any) -> Iterator[str]:
    """The text of an event of responses, if it has one. Raises Fault for an error, which the SDK hands over."""
    if event.type == "response.output_text.delta":
        yield event.delta
    elif event.type in _FAILED:
        raise Fault("event-error", str(event)[:200])
