"""Clients that parse streams of events: httpx2's `sse`, httpx-sse, and the SDKs of
OpenAI and Anthropic.

They are the lab's httpx and httpx2 clients, with the same limits, and read streams as
the users of the parser do. A trial imports only its own library, so `import_library`
imports it and not the module.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from json import JSONDecodeError
from typing import Any, ClassVar

from clientlab.clients.client_interface import (
    LLM_EXTRA,
    OPENAI_FORMATS,
    SEARCHES,
    SSE_FORMATS,
    ClientBase,
    ClientSpec,
    EventSink,
)
from clientlab.clients.httpx_clients import (
    Httpx2Async,
    Httpx2Client,
    Httpx2OnAiohttp,
    HttpxAsync,
    HttpxClient,
)
from clientlab.errors import ClientError
from clientlab.workload.workload import Request


def _data_of(event: Any) -> str:
    """Return the data of a parsed event.

    Raise ClientError for an event of type `error`, which its data may not show.
    """
    if event.event == "error":
        raise ClientError("event-error", event.data[:300])
    return str(event.data)


@ClientSpec(
    "httpx2-sse",
    "httpx2",
    "pool",
    pairs=("threads",),
    formats=SSE_FORMATS,
    quirks=SEARCHES,
)
class Httpx2Sse(Httpx2Client):
    """One httpx2.Client, whose `sse` parses the events."""

    def events(self, request: Request, sink: EventSink) -> int:
        method, url = request.method, request.url
        with self._client.sse(
            url, method=method, headers=request.headers, content=request.body
        ) as source:
            if source.response.status_code < 400:
                for event in source:
                    sink(_data_of(event))
            return int(source.response.status_code)


@ClientSpec(
    "httpx2-sse-async",
    "httpx2",
    "pool",
    kind="asyncio",
    pairs=("workers",),
    quirks=SEARCHES,
    formats=SSE_FORMATS,
)
class Httpx2SseAsync(Httpx2Async):
    """One httpx2.AsyncClient, whose `sse` parses the events."""

    async def events(self, request: Request, sink: EventSink) -> int:
        method, url = request.method, request.url
        async with self._client.sse(
            url, method=method, headers=request.headers, content=request.body
        ) as source:
            if source.response.status_code < 400:
                async for event in source:
                    sink(_data_of(event))
            return int(source.response.status_code)


@ClientSpec(
    "httpx-sse",
    "httpx-sse",
    "pool",
    pairs=("threads",),
    needs=("httpx",),
    extra=LLM_EXTRA,
    quirks=SEARCHES,
    formats=SSE_FORMATS,
)
class HttpxSse(HttpxClient):
    """One httpx.Client, with the parser of httpx-sse."""

    sse: ClassVar[Any]

    @classmethod
    def import_library(cls) -> None:
        super().import_library()
        cls.sse = importlib.import_module("httpx_sse")

    def events(self, request: Request, sink: EventSink) -> int:
        arguments = {
            "headers": dict(request.headers),
            "content": request.body,
        }  # it adds headers of its own
        with self.sse.connect_sse(
            self._client, request.method, request.url, **arguments
        ) as source:
            if source.response.status_code < 400:
                for event in source.iter_sse():
                    sink(_data_of(event))
            return int(source.response.status_code)


@ClientSpec(
    "httpx-sse-async",
    "httpx-sse",
    "pool",
    kind="asyncio",
    pairs=("workers",),
    needs=("httpx",),
    extra=LLM_EXTRA,
    quirks=SEARCHES,
    formats=SSE_FORMATS,
)
class HttpxSseAsync(HttpxAsync):
    """One httpx.AsyncClient, with the parser of httpx-sse."""

    sse: ClassVar[Any]

    @classmethod
    def import_library(cls) -> None:
        super().import_library()
        cls.sse = importlib.import_module("httpx_sse")

    async def events(self, request: Request, sink: EventSink) -> int:
        arguments = {"headers": dict(request.headers), "content": request.body}
        async with self.sse.aconnect_sse(
            self._client, request.method, request.url, **arguments
        ) as source:
            if source.response.status_code < 400:
                async for event in source.aiter_sse():
                    sink(_data_of(event))
            return int(source.response.status_code)


def _text_of_chunk(chunk: Any) -> Any:
    return chunk.choices[0].delta.content if chunk.choices else None


def _text_of_response(event: Any) -> Any:
    if event.type in {
        "error",
        "response.failed",
    }:  # the SDK hands them over like any other
        raise ClientError("event-error", str(event)[:300])
    return event.delta if event.type == "response.output_text.delta" else None


def _text_of_message(event: Any) -> Any:
    return (
        event.delta.text
        if event.type == "content_block_delta" and event.delta.type == "text_delta"
        else None
    )


_PATHS = {  # path behind the base URL → method of the SDK, and the text of an event
    "/chat/completions": ("chat.completions", _text_of_chunk),
    "/responses": ("responses", _text_of_response),
    "/v1/messages": ("messages", _text_of_message),
}


class _Sdk(ClientBase):
    """What all clients of SDKs share.

    The SDK joins the path to its base URL, and encodes the body itself.
    """

    hands_over_texts = True
    sdk_name: ClassVar[str]  # module:Class
    options: ClassVar[dict[str, Any]] = {}
    _sdk: ClassVar[Any]
    _module: ClassVar[Any]
    _client: Any
    _prepared: tuple[Any, tuple[Any, Any, dict[str, Any]] | None] = (None, None)

    @classmethod
    def import_library(cls) -> None:
        getattr(super(), "import_library")()  # noqa: B009 - that of the httpx2 client
        module, _, name = cls.sdk_name.partition(":")
        sdk = cls._module = importlib.import_module(module)
        cls._sdk = getattr(sdk, name)
        for part in (
            "chat.completions",
            "responses",
            "messages",
        ):  # the SDK would import them in the first request
            if (
                importlib.util.find_spec(f"{module}.resources.{part.partition('.')[0]}")
                is not None
            ):
                importlib.import_module(f"{module}.resources.{part}")
        cls.errors = (
            *cls.errors,
            (sdk.APIResponseValidationError, "protocol"),
            (JSONDecodeError, "protocol"),
            (sdk.APIConnectionError, "connect"),
            (sdk.APIError, "event-error"),
        )

    def _prepare(self, request: Request) -> tuple[Any, Any, dict[str, Any]]:
        """Return the method of the SDK that sends a request, the function for texts,
        and the arguments.

        Requests of a workload have the same URL and body, so these are made once.
        """
        known, prepared = self._prepared
        if prepared is not None and known == (request.url, request.body):
            return prepared
        path = next((path for path in _PATHS if request.url.endswith(path)), None)
        if path is None or not isinstance(request.body, bytes):
            raise ClientError(
                "protocol",
                f"the SDK posts JSON to {' or '.join(_PATHS)}, and this request is"
                " another one",
            )
        sdk = self._sdk(
            api_key="none",
            base_url=request.url.removesuffix(path),
            max_retries=0,
            http_client=self._client,
            timeout=self._client.timeout,
            **self.options,
        )
        name, text_of = _PATHS[path]
        for part in name.split("."):
            sdk = getattr(sdk, part)
        prepared = sdk.create, text_of, json.loads(request.body)
        self._prepared = (request.url, request.body), prepared
        return prepared


class _BlockingSdk(_Sdk):
    def events(self, request: Request, sink: EventSink) -> int:
        create, text_of, arguments = self._prepare(request)
        try:
            stream = create(**arguments, extra_headers=request.headers)
        except self._module.APIStatusError as error:
            return int(error.status_code)
        with stream:
            for event in stream:
                if text := text_of(event):
                    sink(text)
            return int(stream.response.status_code)


class _AsyncioSdk(_Sdk):
    async def events(self, request: Request, sink: EventSink) -> int:
        create, text_of, arguments = self._prepare(request)
        try:
            stream = await create(**arguments, extra_headers=request.headers)
        except self._module.APIStatusError as error:
            return int(error.status_code)
        async with stream:
            async for event in stream:
                if text := text_of(event):
                    sink(text)
            return int(stream.response.status_code)


_NO_TELEMETRY = {"open_telemetry": {"traces": {"enabled": False}, "propagation": False}}


@ClientSpec(
    "openai",
    "openai",
    "pool",
    pairs=("threads",),
    needs=("httpx2",),
    extra=LLM_EXTRA,
    quirks=SEARCHES,
    formats=OPENAI_FORMATS,
)
class OpenaiSdk(_BlockingSdk, Httpx2Client):
    """One openai.OpenAI, on httpx2."""

    sdk_name = "openai:OpenAI"


@ClientSpec(
    "openai-async",
    "openai",
    "pool",
    kind="asyncio",
    pairs=("workers",),
    needs=("httpx2",),
    extra=LLM_EXTRA,
    quirks=SEARCHES,
    formats=OPENAI_FORMATS,
)
class OpenaiAsync(_AsyncioSdk, Httpx2Async):
    """One openai.AsyncOpenAI, on httpx2."""

    sdk_name = "openai:AsyncOpenAI"


@ClientSpec(
    "openai-aiohttp",
    "openai",
    "pool",
    kind="asyncio",
    pairs=("workers",),
    extra=LLM_EXTRA,
    needs=("httpx2", "httpx-aiohttp", "aiohttp"),
    formats=OPENAI_FORMATS,
)
class OpenaiOnAiohttp(_AsyncioSdk, Httpx2OnAiohttp):
    """One openai.AsyncOpenAI, on aiohttp."""

    sdk_name = "openai:AsyncOpenAI"


@ClientSpec(
    "anthropic",
    "anthropic",
    "pool",
    pairs=("threads",),
    needs=("httpx2",),
    extra=LLM_EXTRA,
    quirks=SEARCHES,
    formats=("anthropic",),
)
class AnthropicSdk(_BlockingSdk, Httpx2Client):
    """One anthropic.Anthropic, on httpx2."""

    sdk_name, options = "anthropic:Anthropic", _NO_TELEMETRY


@ClientSpec(
    "anthropic-async",
    "anthropic",
    "pool",
    kind="asyncio",
    pairs=("workers",),
    needs=("httpx2",),
    extra=LLM_EXTRA,
    quirks=SEARCHES,
    formats=("anthropic",),
)
class AnthropicAsync(_AsyncioSdk, Httpx2Async):
    """One anthropic.AsyncAnthropic, on httpx2."""

    sdk_name, options = "anthropic:AsyncAnthropic", _NO_TELEMETRY


@ClientSpec(
    "anthropic-aiohttp",
    "anthropic",
    "pool",
    kind="asyncio",
    pairs=("workers",),
    extra=LLM_EXTRA,
    needs=("httpx2", "httpx-aiohttp", "aiohttp"),
    formats=("anthropic",),
)
class AnthropicOnAiohttp(_AsyncioSdk, Httpx2OnAiohttp):
    """One anthropic.AsyncAnthropic, on aiohttp."""

    sdk_name, options = "anthropic:AsyncAnthropic", _NO_TELEMETRY
