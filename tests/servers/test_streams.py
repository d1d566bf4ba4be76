"""Streams of events from both upstreams: their formats, their settings, and the moments
of their events.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import time
from typing import TYPE_CHECKING

import anthropic
import openai
import pytest

from running import ask

if TYPE_CHECKING:
    from running import Server

pytestmark = pytest.mark.real

PROMPT = [{"role": "user", "content": "Hello"}]
SETTINGS = {"X-Stream": "events=3&every=1ms&pings=2&usage=1"}
MARK = re.compile(rb"@(\d{6})(\d{18})(\d{6})")


def numbers(texts: list[str]) -> list[int]:
    assert all(len(text) == 48 for text in texts)
    return [int(text[1:7]) for text in texts]


def test_sdks_read_the_texts_the_end_and_the_usage_of_a_stream_with_pings(
    upstream: Server,
) -> None:
    url, options = (
        f"http://127.0.0.1:{upstream.port}",
        {"api_key": "none", "max_retries": 0},
    )
    call = {"model": "m", "stream": True, "extra_headers": SETTINGS}
    with openai.OpenAI(base_url=f"{url}/v1", **options) as sdk:
        *chunks, end, usage = sdk.chat.completions.create(messages=PROMPT, **call)
        events = list(sdk.responses.create(input="Hello", **call))
    assert numbers(
        [text for chunk in chunks if (text := chunk.choices[0].delta.content)]
    ) == [0, 1, 2]
    assert (end.choices[0].finish_reason, usage.usage.completion_tokens) == ("stop", 3)
    assert numbers(
        [event.delta for event in events if event.type == "response.output_text.delta"]
    ) == [0, 1, 2]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (events[0].type, events[-1].type) == (
        "response.created",
        "response.completed",
    )
    assert events[-1].response.usage.output_tokens == 3
    with anthropic.Anthropic(base_url=url, **options) as sdk:
        events = list(sdk.messages.create(max_tokens=9, messages=PROMPT, **call))
    assert numbers(
        [event.delta.text for event in events if event.type == "content_block_delta"]
    ) == [0, 1, 2]
    assert (events[0].type, events[-1].type) == ("message_start", "message_stop")
    assert (
        next(
            event for event in events if event.type == "message_delta"
        ).usage.output_tokens
        == 3
    )


@pytest.mark.parametrize(
    "name", ["sse", "jsonl", "openai-chat", "openai-responses", "anthropic"]
)
def test_a_sized_stream_has_the_announced_length_and_the_same_bytes(
    upstreams: dict[str, Server], name: str
) -> None:
    path = f"/stream?format={name}&events=12&every=1us&size=100&pings=5&sized=1"
    replies = [upstream.ask(path) for upstream in upstreams.values()]
    assert {int(reply.headers["Content-Length"]) for reply in replies} == {
        len(replies[0].body)
    }
    chunked = upstreams["aiohttp"].ask(path.replace("&sized=1", ""))
    assert chunked.headers["Transfer-Encoding"] == "chunked"
    assert len({MARK.sub(b"", reply.body) for reply in (*replies, chunked)}) == 1
    lines = [
        line.removeprefix(b"data: ")
        for line in chunked.body.splitlines()
        if b"{" in line
    ]
    assert all(json.loads(line) for line in lines)


def test_events_are_written_at_their_moments(upstream: Server) -> None:
    with contextlib.closing(upstream.connect()) as connection:
        ask(connection, "/")
        began = time.monotonic_ns()
        reply = ask(connection, "/stream?first=50ms&every=10ms&events=20&end=30ms")
        took = time.monotonic_ns() - began
    marks = [tuple(map(int, found)) for found in MARK.findall(reply.body)]
    assert [number for number, *_ in marks] == list(range(20))
    planned = [written - 1000 * late for _, written, late in marks]
    assert all(
        abs(moment - planned[0] - 10_000_000 * place) < 20_000
        for place, moment in enumerate(planned)
    )
    assert planned[0] - began >= 50_000_000
    assert took >= 270_000_000


def test_the_end_of_the_body_may_come_along_with_the_last_event(
    upstreams: dict[str, Server],
) -> None:
    with contextlib.closing(upstreams["aiohttp"].connect()) as connection:
        connection.request("GET", "/stream?events=2&every=1ms&end=along")
        assert connection.sock is not None
        received = b""
        while not received.endswith(b"0\r\n\r\n"):
            packet = connection.sock.recv(1 << 16)
            assert packet
            received += packet
    assert b"[DONE]" in packet


def test_the_seed_decides_the_gaps(upstream: Server) -> None:
    def gaps(seed: int) -> list[int]:
        body = upstream.ask(f"/stream?events=5&every=uniform:1ms,9ms&seed={seed}").body
        moments = [
            int(written) - 1000 * int(late) for _, written, late in MARK.findall(body)
        ]
        return [
            round((later - earlier) / 50_000)
            for earlier, later in itertools.pairwise(moments)
        ]

    assert all(abs(one - same) <= 1 for one, same in zip(gaps(7), gaps(7), strict=True))
    assert gaps(7) != gaps(8)


def test_an_event_may_be_large(upstreams: dict[str, Server]) -> None:
    for upstream in upstreams.values():
        first, _ = upstream.ask("/stream?events=1&size=1000000").body.split(b"\n\n", 1)
        assert len(first) == len("data: ") + 1_000_000
        assert len(MARK.findall(first)) == 1


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("format=xml", "format"),
        ("every=0", "every"),
        ("events=0", "events"),
        ("events=9999999", "events"),
        ("size=5", "size"),
        ("first=11s", "first"),
        ("colour=red", "colour"),
        ("events=100000", "MAX_SIZE"),
        ("size=16777217&events=1", "16777216"),
        ("type=a/b%0D%0AX:c", "type"),
    ],
)
def test_bad_settings_are_refused(upstream: Server, settings: str, reason: str) -> None:
    for headers, path in (
        ({}, f"/stream?{settings}"),
        ({"X-Stream": settings}, "/stream"),
    ):
        reply = upstream.ask(path, headers=headers)
        assert reply.status == 400
        assert reason in json.loads(reply.body)["error"]
