"""Faults: their text, how they are drawn, and what is counted."""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import os
import signal

import pytest

from mockupstream.faults import FaultBook, draw, parse_faults, split_call

LONGEST = 60.0


class Clock:
    """A clock that stands until the test moves it."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def begin(text: str, seed: int = 1, clock: Clock | None = None) -> FaultBook:
    """Return a book with these faults."""
    book = FaultBook(LONGEST, clock or Clock())
    put(book, text, seed)
    return book


def put(book: FaultBook, text: str, seed: int) -> None:
    """Begin with these faults."""
    assert book.put(json.dumps({"faults": text, "seed": seed}).encode()) == (204, "")


def repeated_draw(seed: int, call: int, attempt: int) -> float:
    """Draw as the documentation of `draw` says."""
    numbers = (seed, call, attempt)
    packed = b"".join(n.to_bytes(8, "little", signed=True) for n in numbers)
    digest = hashlib.blake2b(packed, digest_size=8).digest()
    return (int.from_bytes(digest, "big") // 2048) * 2.0**-53


def test_a_draw_is_documented() -> None:
    for seed, call, attempt in ((0, 0, 0), (-5, 7, 2), (2**63 - 1, 10**15, 9)):
        assert draw(seed, call, attempt) == repeated_draw(seed, call, attempt)


def test_shares_are_cut_in_the_order_of_the_text() -> None:
    plan = parse_faults("503:0.25;reset:0.5", LONGEST)
    kinds = [plan.choose(number).kind for number in (0, 0.2, 0.25, 0.7, 0.75, 0.99)]
    assert kinds == ["503", "503", "reset", "reset", "good", "good"]


def test_observed_shares_are_within_three_deviations() -> None:
    plan, calls = parse_faults("503:0.05;429:0.1,after=1", LONGEST), 2000
    for seed in range(100):
        kinds = [plan.choose(draw(seed, call, 0)).kind for call in range(calls)]
        failed = calls - kinds.count("good")
        assert abs(failed - 0.15 * calls) <= 3 * math.sqrt(calls * 0.15 * 0.85), seed


def test_equal_seeds_meet_equal_faults_in_any_order() -> None:
    def meet(seed: int, calls: range) -> dict[tuple[int, int], str]:
        book = begin("503:0.3;close:0.2", seed)
        return {(k, n): book.meet(k).kind for k in calls for n in range(2)}

    forward = meet(4, range(200))
    assert forward == meet(4, range(199, -1, -1))
    assert forward != meet(5, range(200))
    assert any(forward[k, 0] != forward[k, 1] for k in range(200))


@pytest.mark.parametrize("rate", [0.5, 7, 100, 1000])
def test_the_token_bucket_keeps_its_rate(rate: float) -> None:
    """It is full at the start, with a tenth of a second's tokens."""
    clock = Clock()
    book = begin(f"limit:{rate}", clock=clock)
    seconds = 1000 / rate
    for attempt in range(10_000):
        clock.now = 1000 + attempt * seconds / 10_000
        met = book.meet(attempt)
        if met.kind == "limit":
            assert met.status == 429
            assert 1 <= met.retry_after <= math.ceil(1 / rate)
    passed = book.summary()["kinds"]["good"] - max(2, rate / 10)
    assert passed == pytest.approx(1000, rel=0.01)


def test_states_hold_from_the_first_attempt_on() -> None:
    clock = Clock()
    book = begin("outage:2..5;slow:4..8,0.2;slow:7..9,1;503:1", clock=clock)
    met = {}
    for second in range(10):
        clock.now = 1000.0 + second
        met[second] = book.meet(0)
    assert [k for k in met if met[k].kind == "outage"] == [2, 3, 4]
    assert [met[k].delay for k in (1, 5, 7, 8, 9)] == [0, 0.2, 1.2, 1, 0]
    summary = book.summary()
    assert summary["kinds"] == {"good": 0, "outage": 3, "limit": 0, "503": 7}
    assert len(summary["bins"]) == 91
    assert [summary["bins"][place] for place in (0, 1, 10, 90)] == [1, 0, 1, 1]


def test_calls_that_are_carried_out_again_are_counted() -> None:
    book = begin("close:1")
    for call in (0, 1, 1, 1, 1 + (1 << 20)):
        book.meet(call)
    found = book.summary()
    counts = [found[n] for n in ("calls", "attempts", "carried_out", "repeated")]
    assert counts == [3, 5, 3, 2]
    put(book, "503:1", 9)
    book.meet(1)
    found = book.summary()
    counts = [found[n] for n in ("calls", "attempts", "carried_out", "repeated")]
    assert counts == [1, 1, 0, 0]
    assert (found["seed"], found["faults"], sum(found["bins"])) == (9, "503:1", 1)


@pytest.mark.parametrize(
    "text",
    [
        "503",
        "good:0.1",
        "399:0.1",
        "600:0.1",
        "reset:1.1",
        "reset:0.6;close:0.5",
        "503:0.1;",
        "503:nan",
        "reset:0.1;reset:0.1",
        "reset:0.1,after=1",
        "429:0.1,after=1.5",
        "slow:0.1",
        "slow:1..2",
        "slow:0.1,over=61",
        "slow:1..2,61",
        "outage:5..2",
        "outage:1..2,1",
        "limit:0",
        "limit:1;limit:2",
    ],
)
def test_a_wrong_text_is_refused_and_changes_nothing(text: str) -> None:
    book = begin("503:1")
    status, reason = book.put(b'{"faults": "%b", "seed": 1}' % text.encode())
    assert status == 400
    assert reason.count("\n") == 1
    assert book.meet(0).kind == "503"


@pytest.mark.parametrize("document", ["", "[]", "{}", '{"faults": "", "seed": "x"}'])
def test_a_wrong_document_is_refused(document: str) -> None:
    book = FaultBook(LONGEST)
    assert book.put(document.encode())[0] == 400
    assert not book.is_on


@pytest.mark.parametrize(
    ("query", "rest", "call"),
    [
        ("call=7", "", 7),
        ("delay=0.1&call=-3", "delay=0.1", -3),
        ("call=1&call=2", "call=1", 2),
        ("recall=1", "recall=1", None),
        ("call=1&x=2", "call=1&x=2", None),
        ("call=x", "call=x", None),
    ],
)
def test_only_the_last_parameter_is_the_number_of_a_call(
    query: str, rest: str, call: int | None
) -> None:
    assert split_call(query) == (rest, call)


@pytest.mark.real
def test_a_killed_worker_locks_nobody_out() -> None:
    here, there = multiprocessing.Pipe()
    parent = os.getpid()

    def clock() -> float:
        if os.getpid() == parent:
            return 0.0
        there.send("the lock is held")
        signal.pause()
        raise AssertionError

    book = FaultBook(LONGEST, clock)
    put(book, "", 1)
    child = multiprocessing.get_context("fork").Process(target=book.meet, args=(0,))
    child.start()
    assert here.recv() == "the lock is held"
    child.kill()
    child.join()
    assert book.meet(1).kind == "good"
