"""Streams of events: every client that reads them, against a server on raw sockets, and the formats of its upstream."""

from __future__ import annotations

import asyncio

import pytest

from clientlab import strategies
from clientlab.clients.client_interface import Budget
from clientlab.conformance.server import counting_server, ok
from clientlab.conformance.stream_answers import EVENTS, SHAPES, failing, long, whole
from clientlab.conformance.streams import format_of
from clientlab.errors import Fault, FieldError, kind_of
from clientlab.strategies import EVERY_CLIENT, LISTED, STREAM_CLIENTS, check_capabilities, find
from clientlab.workload.making import requests_of
from clientlab.workload.workload import Workload
from running import eventually

PAUSE = 0.002
READERS = [
    name
    for name, spec in EVERY_CLIENT.items()
    if spec.http == "1.1" and hasattr(strategies.load(spec.import_path), "events")
]


class Left(Exception):
    """The stream is left."""


class Noting:
    """A sink that keeps what it gets, and leaves the stream after so many events."""

    def __init__(self, most: int = 1000) -> None:
        self.statuses: list[int] = []
        self.pieces: list[bytes | str] = []
        self._most = most

    def answered(self, status: int) -> None:
        self.statuses.append(status)

    def __call__(self, piece: bytes | str) -> None:
        assert self.statuses, "the head comes first"
        self.pieces.append(piece)
        if len(self.numbers) >= self._most:
            raise Left

    @property
    def text(self) -> str:
        """All pieces, joined."""
        return "".join(piece if isinstance(piece, str) else piece.decode() for piece in self.pieces)

    @property
    def numbers(self) -> list[int]:
        """The numbers in the marks of the events."""
        return [int(part[:6]) for part in self.text.split("@")[1:] if len(part) >= 6]


def streamed(name: str, url: str, *sinks: Noting) -> list[int | Exception]:
    """Reads a stream into each sink by the client itself. Returns each status, or the exception."""
    spec = EVERY_CLIENT[name]
    client = strategies.load(spec.import_path)(Budget(1, 5.0), lambda: None)
    request, results = requests_of(Workload(stream=format_of(find(name)), events=EVENTS), url)(0), []

    async def awaited() -> None:
        await client.open()
        for sink in sinks:
            try:
                results.append(await client.events(request, sink))
            except Exception as error:  # noqa: BLE001 - the tests look at it
                results.append(error)
        await client.close()

    if spec.kind == "asyncio":
        asyncio.run(awaited())
        return results
    client.open()
    for sink in sinks:
        try:
            results.append(client.events(request, sink))
        except Exception as error:  # noqa: BLE001 - the tests look at it
            results.append(error)
    client.close()
    return results


def shape_of(name: str):
    """How the stream that the client reads is written."""
    return SHAPES[format_of(find(name))]


@pytest.mark.parametrize("name", READERS)
def test_every_event_of_a_stream_is_handed_over_once_and_in_order(name):
    """Twice in turn, in pieces of the type that the client names; the text behind the mark comes with it."""
    named = strategies.load(EVERY_CLIENT[name].import_path).events_as
    with counting_server(lambda seen: whole(shape_of(name), seen.order, PAUSE)) as server:
        sinks = Noting(), Noting()
        assert streamed(name, server.url, *sinks) == [200, 200]
    for sink in sinks:
        assert sink.statuses == [200]
        assert sink.numbers == list(range(EVENTS))
        assert sink.text.count(" and some text") == EVENTS
        assert {type(piece).__name__ for piece in sink.pieces} == {named}


@pytest.mark.parametrize("name", READERS)
def test_the_body_of_an_error_status_is_not_handed_over(name):
    """The status is, and the next stream is whole."""

    def answer(seen):
        return whole(shape_of(name), 1, PAUSE) if seen.order else ok(b'{"error": {}}', "503 Service Unavailable")

    with counting_server(answer) as server:
        refused, good = Noting(), Noting()
        assert streamed(name, server.url, refused, good) == [503, 200]
    assert (refused.statuses, refused.pieces) == ([503], [])
    assert good.numbers == list(range(EVENTS))


@pytest.mark.parametrize("name", READERS)
def test_an_exception_of_the_sink_ends_the_stream_and_its_connection(name):
    """The server sees the end; the next stream has its own events."""

    def answer(seen):
        return whole(shape_of(name), 1, PAUSE) if seen.order else long(shape_of(name), 0, 0.01, 500)

    with counting_server(answer) as server:
        left, good = Noting(most=2), Noting()
        error, status = streamed(name, server.url, left, good)
        eventually(lambda: 0 in server.left, "the server sees that the stream was left")
    assert isinstance(error, Left)
    assert status == 200
    assert good.numbers == list(range(EVENTS))


@pytest.mark.parametrize("name", STREAM_CLIENTS)
def test_a_client_that_parses_events_raises_for_one_that_is_an_error(name):
    """Its data alone would not show the sink that it is one."""
    with counting_server(lambda seen: failing(shape_of(name), seen.order, PAUSE)) as server:
        sink = Noting()
        (error,) = streamed(name, server.url, sink)
    assert sink.numbers == [0, 1]
    assert kind_of(error, strategies.load(EVERY_CLIENT[name].import_path).errors) == "event-error"
    assert "verloaded" in str(error)


def test_a_parser_of_events_refuses_a_response_of_another_type():
    """As the library does: a page is no stream."""
    page = ok(b"<html>")
    with counting_server(lambda _: page) as server:
        errors = {name: streamed(name, server.url, Noting())[0] for name in STREAM_CLIENTS if "sse" in name}
    kinds = {kind_of(error, strategies.load(EVERY_CLIENT[name].import_path).errors) for name, error in errors.items()}
    assert kinds == {"protocol"}


def test_an_sdk_refuses_a_request_that_none_of_its_methods_sends():
    """Its URL and its body are the SDK's own."""
    client = strategies.load(EVERY_CLIENT["openai"].import_path)(Budget(1, 5.0), lambda: None)
    client.open()
    with pytest.raises(Fault, match="the SDK sends JSON to /chat/completions or /responses"):
        client.events(requests_of(Workload(), "http://127.0.0.1:9")(0), Noting())
    client.close()


def test_requests_holds_events_of_a_stream_without_chunks_unless_it_reads_single_bytes():
    """`lines` is the chunk size of `iter_lines`."""
    with counting_server(lambda seen: whole(SHAPES["sse"], seen.order, 0.05, chunked=False)) as server:
        held = asyncio.run(_arrivals(server.url, {}))
        at_once = asyncio.run(_arrivals(server.url, {"lines": 1}))
    assert max(held) - min(held) < 0.05
    assert max(at_once) - min(at_once) > 0.15


async def _arrivals(url: str, settings: dict[str, int]) -> list[float]:
    """Moments at which requests hands over the events of a stream."""
    moments: list[float] = []
    loop = asyncio.get_running_loop()

    class Timing(Noting):
        def __call__(self, piece):
            if b"@" in piece:
                moments.append(loop.time())

    client = strategies.load(EVERY_CLIENT["requests-session"].import_path)(Budget(1, 5.0), lambda: None, **settings)
    client.open()
    client.events(requests_of(Workload(stream="sse", events=EVENTS), url)(0), Timing())
    client.close()
    return moments


@pytest.mark.parametrize(
    ("name", "stream", "says"),
    [
        ("openai", None, "'openai' reads only streams; set stream to openai-chat or openai-responses, or run httpx2"),
        ("openai@threads", "anthropic", "reads openai-chat, openai-responses; one that can is httpx2-client"),
        ("httpx2-sse", "jsonl", "reads sse, openai-chat, openai-responses, anthropic; one that can is httpx2-client"),
        ("httplib2", "sse", "'httplib2' reads no stream of events; one that can is "),
        ("ab", "sse", "'ab' reads no stream of events; one that can is "),
        ("pycurl@multi", "sse", "by its executor multi; run its client pycurl with another one"),
    ],
)
def test_a_strategy_and_a_stream_that_do_not_go_together_are_refused(name, stream, says):
    """In one line, which names a client that can."""
    with pytest.raises(FieldError) as error:
        check_capabilities(find(name), Workload(stream=stream))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", [name for name in LISTED if LISTED[name].client in STREAM_CLIENTS])
def test_a_listed_strategy_that_only_reads_streams_reads_each_of_its_formats(name):
    """And is refused for none of them."""
    for stream in STREAM_CLIENTS[LISTED[name].client].stream_formats:
        check_capabilities(find(name), Workload(stream=stream))
