"""What a sink records of the pieces of a stream, and which streams it refuses."""

from __future__ import annotations

import pytest

from clientlab.errors import Fault
from clientlab.measuring.event_recorder import StopStream, StreamRecord, rules_of
from clientlab.samples.event_log import EventLog
from clientlab.samples.event_log_reader import read_events
from clientlab.workload.workload import Workload


class _Client:
    def __init__(self, events_as: str = "bytes", pieces: str = "lines") -> None:
        self.events_as = events_as
        self.pieces = pieces


def mark(number: int, written: int = 5_000_000_000, late: int = 7) -> bytes:
    """As the lab's upstream writes it into an event."""
    return b"@%06d%018d%06d" % (number, written, late)


@pytest.fixture
def log(tmp_path):
    found = EventLog(tmp_path, 100)
    yield found
    found.close()


def record_of(log: EventLog, workload: Workload, **client: str) -> StreamRecord:
    return StreamRecord(log, 3, rules_of(_Client(**client), workload))


def test_each_event_is_recorded_with_its_mark(log, tmp_path):
    """Number, write time and lateness are those of the mark; lines without a mark are no events."""
    record = record_of(log, Workload(stream="sse", events=2))
    record.sink.answered(200)
    for line in (b"id: 0", b"data: " + mark(0) + b" abc", b"", b": ping", b"data: " + mark(1, 6_000_000_000, 12)):
        record.sink(line)
    record.finish()
    found = read_events(tmp_path)
    assert found.requests.tolist() == [3]
    assert found.counts.tolist() == [2]
    assert found.number.tolist() == [0, 1]
    assert found.written.tolist() == [5.0, 6.0]
    assert found.late.tolist() == [7e-6, 12e-6]
    assert found.begun[0] <= found.answered[0] <= found.arrived[0] <= found.arrived[1]
    assert len(record) == 41 + 37


@pytest.mark.parametrize("size", [1, 2, 7, 31, 32, 40, 1000])
def test_a_chunk_may_end_anywhere(log, tmp_path, size):
    """Also within a mark. The event counts when its mark is whole, and events of one chunk arrived together."""
    body = b"".join(b"data: " + mark(number) + b" filler\n\n" for number in range(5))
    record = record_of(log, Workload(stream="sse", events=5), pieces="chunks")
    for start in range(0, len(body), size):
        record.sink(body[start : start + size])
    record.finish()
    found = read_events(tmp_path)
    assert found.number.tolist() == [0, 1, 2, 3, 4]
    assert len(set(found.arrived.tolist())) == (1 if size == 1000 else 5)


def test_text_and_bytes_are_recorded_alike(log, tmp_path):
    """Libraries hand over either."""
    record = record_of(log, Workload(stream="openai-chat", events=1), events_as="str", pieces="events")
    record.sink(mark(0).decode())
    record.finish()
    assert read_events(tmp_path).number.tolist() == [0]


@pytest.mark.parametrize("numbers", [[], [0], [0, 1, 3], [0, 2]])
def test_a_stream_without_its_last_event_is_an_error(log, numbers):
    """Of another number of events, or with another last one."""
    record = record_of(log, Workload(stream="sse", events=3))
    for number in numbers:
        record.sink(b"data: " + mark(number))
    with pytest.raises(Fault, match=f"ended after {len(numbers)} of 3") as fault:
        record.finish()
    assert fault.value.kind == "events-missing"


def test_more_events_than_the_workload_has_are_an_error(log):
    """The upstream would have repeated one."""
    record = record_of(log, Workload(stream="sse", events=1))
    record.sink(b"data: " + mark(0))
    with pytest.raises(Fault) as fault:
        record.sink(b"data: " + mark(0))
    assert fault.value.kind == "events-beyond"


@pytest.mark.parametrize(
    "piece",
    [
        b"event: error",
        b'data: {"error": {"message": "overloaded"}}',
        b'data: {"type": "error", "error": {"type": "overloaded_error"}}',
        b'data: {"type":"response.failed","response":{"error":{}}}',
    ],
)
def test_an_event_that_is_an_error_is_an_error(log, piece):
    """As the APIs of OpenAI and Anthropic write it, and as an SSE event of that name."""
    with pytest.raises(Fault) as fault:
        record_of(log, Workload(stream="sse", events=9)).sink(piece)
    assert fault.value.kind == "event-error"


@pytest.mark.parametrize("size", [1, 3, 12, 100])
def test_an_error_may_come_in_several_chunks(log, size):
    """Its line is looked at when it is whole, or when the stream has ended."""
    record = record_of(log, Workload(stream="sse", events=9), pieces="chunks")
    record.sink(b"data: " + mark(0) + b"\n\n")
    body = b"event: errors\ndata: x\n\nevent: error"
    for start in range(0, len(body), size):
        record.sink(body[start : start + size])
    with pytest.raises(Fault) as fault:
        record.finish()
    assert fault.value.kind == "event-error"


def test_a_text_about_errors_is_no_error(log):
    """Only an event that is one."""
    record = record_of(log, Workload(stream="sse", events=9))
    record.sink(b'data: {"delta": "an error: event: error"}')
    record.sink(b"event: errors")


def test_a_stream_is_left_after_so_many_events(log, tmp_path):
    """The client gets an exception, by which it closes the response."""
    record = record_of(log, Workload(stream="sse", events=9, stop_after=2), pieces="chunks")
    record.sink(b"data: " + mark(0) + b"\n\n")
    with pytest.raises(StopStream):
        record.sink(b"data: " + mark(1) + b"\n\ndata: " + mark(2) + b"\n\n")
    assert read_events(tmp_path).number.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("stream", "pieces", "given"),
    [
        ("sse", "lines", [b": hello", b"data: a", b"", b"event: x", b"data: b", b"", b"data: [DONE]"]),
        ("sse", "chunks", [b"data: a\n\nda", b"ta: b\n", b"\ndata: [DONE]\n\n"]),
        ("sse", "events", [b"a", b"b"]),
        ("jsonl", "lines", [b"{}", b"", b"{}"]),
        ("jsonl", "chunks", [b"{}\n{", b"}"]),
    ],
)
def test_events_of_a_foreign_server_are_counted_by_the_format(log, tmp_path, stream, pieces, given):
    """It writes no marks: what an event is follows from what the client hands over."""
    record = record_of(log, Workload(stream=stream, foreign=True), pieces=pieces)
    for piece in given:
        record.sink(piece)
    record.finish()
    found = read_events(tmp_path)
    assert found.count == 2
    assert found.number.tolist() == [-1, -1]


def test_a_foreign_answer_without_events_is_an_error(log):
    """An HTML page, for example."""
    record = record_of(log, Workload(stream="sse", foreign=True))
    record.sink(b"<html>")
    with pytest.raises(Fault) as fault:
        record.finish()
    assert fault.value.kind == "events-missing"
