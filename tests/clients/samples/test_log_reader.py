"""The log reader: finished trials, the number of finished requests, and the new records of a running trial."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from clientlab.samples import log_reader
from clientlab.samples.log import (
    ERROR_CODES,
    NOTE_SUFFIX,
    RECORD_SIZE,
    RECORDS_FILE,
    SampleLog,
    process_notes,
    write_record,
)

ANOTHER_PROCESS = """
import sys
from pathlib import Path
from clientlab.samples.log import SampleLog
log = SampleLog(Path(sys.argv[1]), 0, 8)
code = log.error_code("other:Strange", "from the other process")
log.write_late(5, 105.0, 0.5, 7, 0, code)
log.write_late(40, 140.0, 0.5, 7, 200, 0)
log.connected()
log.close(1234)
"""


@pytest.fixture
def log(tmp_path):
    """A log with room for 8 requests from number 0 on."""
    made = SampleLog(tmp_path, 0, 8)
    yield made
    made.close(0)


def put(log: SampleLog, number: int, *, start: float | None = None, seconds: float = 0.25, code: int = 0) -> None:
    """Write a finished request whose start is 100 s and its number, unless told."""
    log.write_late(number, 100.0 + number if start is None else start, seconds, 10, 0 if code else 200, code)


def begin(log: SampleLog, number: int) -> None:
    """Write a record that is not yet done: what a reader may see in the middle of a write."""
    write_record(log.buffer, log.base + number * RECORD_SIZE, 100.0 + number, 0.0, 0, 0, 0, 0)


def new_numbers(follower: log_reader.LogFollower) -> list[int]:
    """Return the numbers of the new records, each of which started 100 s after its number."""
    records, numbers = follower.new_records()
    assert (records["start"] - 100.0).tolist() == numbers.tolist()
    return numbers.tolist()


def test_every_finished_request_is_read_with_what_was_written(log, tmp_path):
    """In the order of their starts; requests in flight and places never used are left out."""
    for number, start in ((0, 5.0), (1, 3.0), (4, 4.0)):
        put(log, number, start=start, seconds=0.1 * number)
    begin(log, 2)
    found = log_reader.read_measured(tmp_path)
    assert found.numbers.tolist() == [1, 4, 0]
    assert found.records["start"].tolist() == [3.0, 4.0, 5.0]
    assert found.records["seconds"].tolist() == [0.1, 0.4, 0.0]
    assert found.records["bytes"].tolist() == [10] * 3
    assert found.records["status"].tolist() == [200] * 3
    assert (found.errors, found.examples) == ({}, {})


def test_shards_share_the_log_and_each_has_every_third_record(tmp_path):
    """Each writes its own requests 0, 1, 2, …; the reader sees the numbers of the trial, those of warm-ups below 0."""
    for shard in range(3):
        made = SampleLog(tmp_path, -3, 12, shard, 3)
        made.begin()
        for own in (-1, 0, 1, 2):
            made.write_late(own, 100.0 + own, 0.5, shard, 200, 0)
        made.close(0)
        (tmp_path / f"{os.getpid()}{NOTE_SUFFIX}").rename(tmp_path / f"{shard}{NOTE_SUFFIX}")
    found = log_reader.read_measured(tmp_path)
    assert sorted(found.numbers.tolist()) == list(range(9))
    assert found.records["bytes"].tolist() == [number % 3 for number in found.numbers]
    assert [note.shard for note in process_notes(tmp_path)] == [0, 1, 2]


def test_the_warm_up_is_left_out_with_its_errors(tmp_path):
    log = SampleLog(tmp_path, -1, 3)
    put(log, -1, code=log.error_code("reset", "in the warm-up"))
    put(log, 0)
    log.close(0)
    found = log_reader.read_measured(tmp_path)
    assert found.numbers.tolist() == [0]
    assert (found.errors, found.examples) == ({}, {})


def test_errors_are_counted_by_kind_with_the_first_message_of_each(log, tmp_path):
    reset = log.error_code("reset", "first")
    assert log.error_code("reset", "second") == reset == ERROR_CODES["reset"]
    strange, stranger = (log.error_code(kind, f"of {kind}") for kind in ("other:Strange", "other:Stranger"))
    for number, code in enumerate((reset, reset, strange, 0, stranger)):
        put(log, number, code=code)
    found = log_reader.read_measured(tmp_path)
    assert found.errors == {"reset": 2, "other:Strange": 1, "other:Stranger": 1}
    assert found.examples == {
        "reset": "first", "other:Strange": "of other:Strange", "other:Stranger": "of other:Stranger",
    }  # fmt: skip


@pytest.mark.real
def test_several_processes_write_one_log(log, tmp_path):
    put(log, 0)
    subprocess.run([sys.executable, "-c", ANOTHER_PROCESS, tmp_path], check=True, timeout=30)
    put(log, 1, code=log.error_code("other:Strange", "a later one"))
    found = log_reader.read_measured(tmp_path)
    assert found.numbers.tolist() == [0, 1, 5, 40]
    assert found.errors == {"other:Strange": 2}
    assert found.examples == {"other:Strange": "from the other process"}


@pytest.mark.parametrize("content", [None, b"", b"something else" * 50])
def test_a_folder_without_a_log_has_no_samples(content, tmp_path):
    if content is not None:
        (tmp_path / RECORDS_FILE).write_bytes(content)
    found = log_reader.read_measured(tmp_path)
    assert (len(found.records), len(found.numbers), found.errors) == (0, 0, {})
    assert new_numbers(log_reader.LogFollower(tmp_path)) == []


def test_each_finished_request_is_counted_once_while_the_log_grows(log, tmp_path):
    """A request in flight does not hide later ones that finished, and is counted once it has finished."""
    counter = log_reader.FinishedCounter(tmp_path)
    counts = [counter.count()]
    for number in (0, 2, 3):
        put(log, number)
    begin(log, 1)
    counts += [counter.count(), counter.count()]
    put(log, 1)
    counts.append(counter.count())
    put(log, 50)
    counts.append(counter.count())
    assert counts == [0, 3, 3, 4, 5]


def test_each_record_is_returned_once_whatever_the_order(tmp_path):
    """Also one that the last look alone can find."""
    log, follower = SampleLog(tmp_path, 0, 100_000), log_reader.LogFollower(tmp_path)
    numbers = list(range(10_000))
    random.Random(7).shuffle(numbers)
    assert new_numbers(follower) == []
    for begin in range(0, 10_000, 1250):
        part = numbers[begin : begin + 1250]
        for number in part:
            put(log, number)
        assert new_numbers(follower) == sorted(part)
    assert new_numbers(follower) == []
    log.close(0)


def test_new_records_leave_out_the_warm_up_and_include_those_beyond_the_expected_number(tmp_path):
    """A warm-up is numbered from below zero. Where a duration ends the trial, the number of requests was a guess."""
    log, follower = SampleLog(tmp_path, -5, 15), log_reader.LogFollower(tmp_path)
    for number in range(-5, 10):
        put(log, number)
    assert new_numbers(follower) == list(range(10))
    for number in range(10, 9000):
        put(log, number)
    assert new_numbers(follower) == list(range(10, 9000))
    log.close(0)
