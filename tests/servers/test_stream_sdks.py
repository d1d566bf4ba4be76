"""The official SDKs parse the streams of both upstreams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anthropic
import openai
import pytest

from servers.marks import marks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from running import Server

SETTINGS = {"X-Stream": "events=12&every=1ms&pings=4&seed=3"}
PROMPT = "count"


@pytest.fixture
def open_ai(upstream: Server) -> Iterator[openai.OpenAI]:
    """The OpenAI SDK, pointed at each upstream."""
    with openai.OpenAI(api_key="none", base_url=f"http://127.0.0.1:{upstream.port}/v1", max_retries=0) as client:
        yield client


def numbers(texts: list[str]) -> list[int]:
    """Return the numbers of the marks, one a text."""
    return [mark.number for text in texts for mark in marks(text)]


@pytest.mark.parametrize("usage", [False, True])
def test_openai_reads_chat_completions(open_ai: openai.OpenAI, *, usage: bool) -> None:
    """Each event is one chunk's delta; then come the reason and, if wanted, the count of tokens."""
    options: openai.types.chat.ChatCompletionStreamOptionsParam = {"include_usage": True}
    with open_ai.chat.completions.create(
        model="mock",
        messages=[{"role": "user", "content": PROMPT}],
        stream=True,
        stream_options=options if usage else openai.omit,
        extra_headers=SETTINGS,
    ) as stream:
        chunks = list(stream)
    choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
    assert choices[0].delta.role == "assistant"
    assert numbers([choice.delta.content or "" for choice in choices]) == list(range(12))
    assert choices[-1].finish_reason == "stop"
    assert [chunk.usage.completion_tokens for chunk in chunks if chunk.usage] == ([12] if usage else [])


def test_openai_reads_responses(open_ai: openai.OpenAI) -> None:
    """Sequence numbers count from 0 over all events, and the response is completed."""
    with open_ai.responses.create(model="mock", input=PROMPT, stream=True, extra_headers=SETTINGS) as stream:
        events = list(stream)
    assert [event.sequence_number for event in events] == list(range(4 + 12 + 4))
    assert numbers([event.delta for event in events if event.type == "response.output_text.delta"]) == list(range(12))
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.status == "completed"
    assert last.response.usage is not None
    assert last.response.usage.output_tokens == 12


def test_openai_accumulates_responses(open_ai: openai.OpenAI) -> None:
    """The SDK's own accumulation accepts the order of the events."""
    with open_ai.responses.stream(model="mock", input=PROMPT, extra_headers=SETTINGS) as stream:
        texts = [event.delta for event in stream if event.type == "response.output_text.delta"]
        assert stream.get_final_response().status == "completed"
    assert numbers(texts) == list(range(12))


def test_anthropic_reads_messages(upstream: Server) -> None:
    """The SDK collects one message of all events, with its reason and count of tokens."""
    with (
        anthropic.Anthropic(api_key="none", base_url=f"http://127.0.0.1:{upstream.port}", max_retries=0) as client,
        client.messages.stream(
            model="mock", max_tokens=100, messages=[{"role": "user", "content": PROMPT}], extra_headers=SETTINGS
        ) as stream,
    ):
        texts = list(stream.text_stream)
        message = stream.get_final_message()
    assert numbers(texts) == list(range(12))
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 12)
    assert message.content[0].type == "text"
    assert message.content[0].text == "".join(texts)


def test_sdks_tell_the_status_of_an_error(open_ai: openai.OpenAI) -> None:
    """An error's status becomes the SDK's own exception."""
    with pytest.raises(openai.RateLimitError) as caught:
        open_ai.responses.create(model="mock", input=PROMPT, stream=True, extra_headers={"X-Stream": "status=429"})
    assert caught.value.body == "the request asked for the status 429"
