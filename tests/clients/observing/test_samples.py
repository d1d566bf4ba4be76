"""The sample log and its reader, for finished and for running trials."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys

import pytest

from clientlab import strategies
from clientlab.observing import samples as log_reader
from clientlab.trial import recording, sample_log
from clientlab.trial.context import PeerAddress, TrialContext
from clientlab.trial.sample_log import SampleLog
from clientlab.workload.workload import make_workload

ANOTHER_PROCESS = """
import sys
from pathlib import Path
from clientlab.trial.sample_log import SampleLog
log = SampleLog(Path(sys.argv[1]), 0, 8)
code = log.error_code("other:Strange", "from the other process")
log.write_late(5, 105.0, 0.5, 7, 0, code)
log.write_late(40, 140.0, 0.5, 7, 200, 0)
log.connected()
log.close(1234)
"""


@pytest.fixture
def log(tmp_path):
    made = SampleLog(tmp_path, 0, 8)
    yield made
    made.close(0)


def put(
    log: SampleLog,
    number: int,
    *,
    start: float | None = None,
    seconds: float = 0.25,
    code: int = 0,
) -> None:
    """Write a finished request. Its default start is 100 s plus its number."""
    if start is None:
        start = 100.0 + number
    status = 0 if code else 200
    log.write_late(number, start, seconds, 10, status, code)


def begin(log: SampleLog, number: int) -> None:
    """Write a record that is not yet done, as a reader may see it in the middle of a
    write.
    """
    place = log.base + number * sample_log.RECORD_SIZE
    sample_log.write_record(log.buffer, place, 100.0 + number, 0.0, 0, 0, 0, 0)


def new_numbers(follower: log_reader.LogFollower) -> list[int]:
    """Return the numbers of the new records, each of which started 100 s after its
    number.
    """
    records, numbers = follower.new_records()
    assert (records["start"] - 100.0).tolist() == numbers.tolist()
    return numbers.tolist()


def test_every_finished_request_is_read_with_what_was_written(log, tmp_path):
    for number, start in ((0, 5.0), (1, 3.0), (4, 4.0)):
        put(log, number, start=start, seconds=0.1 * number)
    begin(log, 2)
    found = log_reader.read_measured(tmp_path)
    assert found.numbers.tolist() == [1, 4, 0]
    assert found.records["start"].tolist() == [3.0, 4.0, 5.0]
    assert found.records["seconds"].tolist() == [0.1, 0.4, 0.0]
    assert found.records["bytes"].tolist() == [10] * 3
    assert found.records["status"].tolist() == [200] * 3
    assert found.errors == {}
    assert found.examples == {}


def test_shards_share_the_log_and_each_has_every_third_record(tmp_path):
    """Each writes its own requests 0, 1, 2, …; the reader returns the numbers of the
    trial.
    """
    for shard in range(3):
        made = SampleLog(tmp_path, -3, 12, shard, 3)
        made.begin()
        for own in (-1, 0, 1, 2):
            made.write_late(own, 100.0 + own, 0.5, shard, 200, 0)
        made.close(0)
        note = tmp_path / f"{os.getpid()}{sample_log.NOTE_SUFFIX}"
        note.rename(tmp_path / f"{shard}{sample_log.NOTE_SUFFIX}")
    found = log_reader.read_measured(tmp_path)
    assert sorted(found.numbers.tolist()) == list(range(9))
    assert found.records["bytes"].tolist() == [number % 3 for number in found.numbers]
    assert [note.shard for note in sample_log.process_notes(tmp_path)] == [0, 1, 2]


def test_errors_are_counted_by_kind_with_the_first_message_of_each(tmp_path):
    log = SampleLog(tmp_path, -1, 8)
    put(log, -1, code=log.error_code("protocol", "in the warm-up"))
    reset = log.error_code("reset", "first")
    assert reset == sample_log.ERROR_CODES["reset"]
    assert log.error_code("reset", "second") == reset
    strange = log.error_code("other:Strange", "a strange one")
    stranger = log.error_code("other:Stranger", "a stranger one")
    for number, code in enumerate((reset, reset, strange, 0, stranger)):
        put(log, number, code=code)
    log.close(0)
    found = log_reader.read_measured(tmp_path)
    assert found.errors == {"reset": 2, "other:Strange": 1, "other:Stranger": 1}
    assert found.examples == {
        "reset": "first",
        "other:Strange": "a strange one",
        "other:Stranger": "a stranger one",
    }


def test_a_line_that_was_not_written_whole_hides_no_error(log, tmp_path):
    """And more kinds than there are codes are an error with a message."""
    file = tmp_path / sample_log.ERRORS_FILE
    file.write_bytes(b'{"code": 64, "ki')
    assert log.error_code("other:Strange", "first") == 64
    file.write_bytes(b"")
    for number in range(191):
        log.error_code(f"other:{number}", "so")
    with pytest.raises(OverflowError, match="192 kinds of error"):
        log.error_code("other:last", "so")


def test_disk_space_is_reserved_as_it_is_used(tmp_path):
    """The records of a billion requests take 32 GB."""
    log = SampleLog(tmp_path, 0, 10**9)
    file = tmp_path / sample_log.RECORDS_FILE
    reserved = file.stat().st_size
    beyond = reserved // sample_log.RECORD_SIZE
    log.write_late(beyond, 1.0, 1.0, 0, 200, 0)
    grown = file.stat().st_size
    log.close(0)
    assert reserved == 64 << 20
    assert grown == 128 << 20


@pytest.mark.real
def test_several_processes_write_one_log(log, tmp_path):
    put(log, 0)
    command = [sys.executable, "-c", ANOTHER_PROCESS, tmp_path]
    subprocess.run(command, check=True, timeout=30)
    put(log, 1, code=log.error_code("other:Strange", "a later one"))
    found = log_reader.read_measured(tmp_path)
    assert found.numbers.tolist() == [0, 1, 5, 40]
    assert found.errors == {"other:Strange": 2}
    assert found.examples == {"other:Strange": "from the other process"}


@pytest.mark.parametrize("content", [None, b"", b"something else" * 50])
def test_a_folder_without_a_log_has_no_samples(content, tmp_path):
    if content is not None:
        (tmp_path / sample_log.RECORDS_FILE).write_bytes(content)
    found = log_reader.read_measured(tmp_path)
    assert len(found.records) == 0
    assert len(found.numbers) == 0
    assert found.errors == {}
    assert new_numbers(log_reader.LogFollower(tmp_path)) == []


def test_each_finished_request_is_counted_once_while_the_log_grows(log, tmp_path):
    counter = log_reader.FinishedCounter(tmp_path)
    for number in (0, 2, 3):
        put(log, number)
    begin(log, 1)
    assert counter.count() == 3
    assert counter.count() == 3
    for number, count in ((1, 4), (50, 5)):
        put(log, number)
        assert counter.count() == count


def test_requests_are_counted_whatever_gaps_their_numbers_have(tmp_path):
    """Each process of a pool has a chunk of the numbers, and they begin far apart."""
    log = SampleLog(tmp_path, 0, 40_000)
    counter = log_reader.FinishedCounter(tmp_path)
    for number in (9_000, 30_000):
        put(log, number, code=1)
    assert counter.count() == 2
    assert counter.failed == 2
    for number in range(12_000, 21_000):
        put(log, number)
    for _ in range(2):
        assert counter.count() == 9_002
        assert counter.failed == 2
    put(log, 0)
    assert counter.count() == 9_003
    assert counter.failed == 2
    log.close(0)


def test_requests_in_a_row_are_counted_although_the_file_system_knows_of_none(
    tmp_path, monkeypatch
):
    """Some in user space learn only later what was written to a mapped file."""

    def know_nothing(*_):
        raise OSError(errno.ENXIO, "no data")

    monkeypatch.setattr(log_reader.os, "lseek", know_nothing)
    log = SampleLog(tmp_path, 0, 40_000)
    counter = log_reader.FinishedCounter(tmp_path)
    for until in (1, 9_000, 9_001):
        for number in range(until):
            put(log, number)
        assert counter.count() == until
    log.close(0)


@pytest.mark.parametrize("shards", [1, 3, 4])
def test_the_log_of_a_divided_trial_begins_with_its_warm_up(shards, tmp_path):
    """Its first record is that of the first request of the warm-up."""
    workload = make_workload(
        duration=0.01, concurrency=2000, shards=shards, connections="warm"
    )
    folder = tmp_path / "log"
    strategy = strategies.find("aiohttp@semaphore")
    address = PeerAddress("http://127.0.0.1")
    context = TrialContext(strategy, workload, address, str(folder))
    own = context.of_shard(0)
    recording.preallocate(own)
    counted = log_reader.FinishedCounter(folder)
    log, _ = recording._logs.pop((os.getpid(), str(folder)))
    put(log, -own.warm_up)
    _, _, records = log_reader._open(folder / sample_log.RECORDS_FILE)
    assert records["done"][0] == 1
    assert counted.count() == 1
    log.close(0)


def test_each_new_record_is_returned_once_whatever_the_order(tmp_path):
    log = SampleLog(tmp_path, -5, 15)
    follower = log_reader.LogFollower(tmp_path)
    numbers = list(range(-5, 9_995))
    random.Random(7).shuffle(numbers)
    assert new_numbers(follower) == []
    for first in range(0, 10_000, 1250):
        part = numbers[first : first + 1250]
        for number in part:
            put(log, number)
        measured = [number for number in part if number >= 0]
        assert new_numbers(follower) == sorted(measured)
    assert new_numbers(follower) == []
    log.close(0)
