"""Streams that cannot be: one line and exit code 2; a server without events: an error of its own kind."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

STREAM = ("run", "-t", "httpx2-client", "-n", "1", "--stream", "sse")
RECORDED = str(Path(__file__).with_name("recorded.jsonl"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((*STREAM[:-1], "ssee"), "'--stream': 'ssee' is not one of 'sse', 'jsonl', 'openai-chat'"),
        ((*STREAM, "--every", "0"), "--every 0: a gap above 0 keeps events apart; write 1ms or more"),
        ((*STREAM, "--every", "40s"), "the stream is silent for 40 s, and --timeout ends each wait after 30 s"),
        ((*STREAM, "--events", "100001"), "--events 100001: events of a stream; write 1 to 100,000"),
        ((*STREAM, "--events", "100000", "-n", "501"), "a trial holds 50,000,000; write fewer"),
        ((*STREAM, "--end", "soon"), "--end 'soon': write with, apart, length, or a time as 5ms"),
        ((*STREAM, "--goodput", "first<0"), "'--goodput'.*write a limit above 0"),
        ((*STREAM, "--replay", RECORDED), "--replay and --stream: they exclude each other; leave out one of them"),
        ((*STREAM, "--parse"), "--parse and --stream: they exclude each other"),
        (
            ("run", "-t", "openai", "--stream", "sse"),
            "'openai' reads openai-chat, openai-responses; one that can is \\w",
        ),
        (("run", "-t", "httplib2", "--stream", "sse"), "'httplib2' reads no stream of events; one that can is \\w"),
        (("run", "-t", "openai"), "'openai' reads only streams; set --stream to openai-chat"),
        (("run", "-t", "httpx2-client", "--events", "5"), "--events 5: only a stream has it; set --stream"),
    ],
)
def test_it_is_refused_in_one_line(clientlab, words, says):
    """Nothing is measured, and the line names the option and what to write."""
    said = clientlab(*words)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert re.search(says, said.err), said.err


class _WithoutEvents(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b"<html>no event</html>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def page() -> Iterator[str]:
    """The URL of a server whose answer has no events."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _WithoutEvents) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_foreign_server_without_events_fails_each_stream(clientlab, page, results):
    """Each stream counts as `events-missing`, the run ends with exit code 3, and its file has the errors."""
    said = clientlab(*STREAM, "--url", page, "--rounds", "1")
    assert said.code == 3
    (trial,) = results.read("last").trials
    assert trial.errors == {"events-missing": 1}


def test_the_lag_of_a_foreign_server_is_unknown(clientlab, page):
    """Its events have no marks, so a ranking by lag is refused in one line."""
    said = clientlab(*STREAM, "--url", page, "--rank", "lag")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "does not mark when it wrote an event" in said.err
