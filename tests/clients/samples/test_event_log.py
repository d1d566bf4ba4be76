"""The log of events: it grows, several threads share it, and a reader follows it while it grows."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from clientlab.samples.event_log import ANSWERED, BEGUN, UNMARKED, EventLog
from clientlab.samples.event_log_reader import EventFollower, marks_of, read_events


def write(log: EventLog, request: int, at: float, kind: int, digits: bytes = b"") -> None:
    log.write_late(log.next_place(), request, at, digits, kind)


def test_streams_are_told_apart_and_their_events_ordered(tmp_path):
    """Those of a warm-up, with numbers below 0, are left out."""
    log = EventLog(tmp_path, 1)
    for request in (1, 0, -1):
        write(log, request, 10.0 + request, BEGUN)
    write(log, 1, 11.5, ANSWERED)
    for at in (13.0, 12.0):
        write(log, 1, at, UNMARKED)
    write(log, 0, 12.5, UNMARKED)
    write(log, -1, 12.5, UNMARKED)
    log.close()
    found = read_events(tmp_path)
    assert found.requests.tolist() == [0, 1]
    assert found.begun.tolist() == [10.0, 11.0]
    assert np.isnan(found.answered[0])
    assert found.answered[1] == 11.5
    assert found.counts.tolist() == [1, 2]
    assert found.arrived.tolist() == [12.5, 12.0, 13.0]
    assert found.only(np.array([False, True])).arrived.tolist() == [12.0, 13.0]


def test_a_log_grows_under_several_threads(tmp_path):
    """Each record has a place of its own, also in the moment in which the file is enlarged."""
    log = EventLog(tmp_path, 1)

    def work(request: int) -> None:
        for at in range(5000):
            write(log, request, float(at), UNMARKED)

    threads = [threading.Thread(target=work, args=(request,)) for request in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    found = read_events(tmp_path)
    assert found.counts.tolist() == [5000] * 4
    assert found.arrived.tolist() == [*map(float, range(5000))] * 4


def test_a_follower_returns_each_record_once(tmp_path):
    """While the log grows, beyond the block that is read at a time; those of a warm-up are left out."""
    log, follower = EventLog(tmp_path, 1), EventFollower(tmp_path)
    assert len(follower.new_records()) == 0
    seen = []
    for count in (3, 0, 40_000):
        for _ in range(count):
            write(log, len(seen), float(len(seen)), UNMARKED)
            seen.append(float(len(seen)))
        write(log, -1, 0.0, BEGUN)
        assert len(follower.new_records()) == count
    assert len(follower.new_records()) == 0
    log.close()


@pytest.mark.parametrize("digits", [b"", b"1" * 29, b"1" * 29 + b"x"])
def test_a_mark_of_other_characters_is_none(digits):
    """A foreign server may write an @, too."""
    number, written, late = marks_of(np.array([digits], "S30"), np.array([True]))
    assert number.tolist() == [-1]
    assert np.isnan(written[0])
    assert np.isnan(late[0])


def test_a_trial_without_streams_has_no_events(tmp_path):
    """So its figures of streams are unknown."""
    assert read_events(tmp_path) is None
