"""A sample log read while it grows."""

from __future__ import annotations

import random

from clientlab.analysis.growing import Growing
from clientlab.sample import RECORD_SIZE, SampleLog, write_record


def written(log: SampleLog, number: int, code: int = 0) -> None:
    """Request `number` has ended."""
    write_record(log.buffer, number * RECORD_SIZE + log.base, float(number), 0.25, 7, 200, code, 1)


def test_each_record_is_given_once_whatever_the_order(tmp_path):
    """Out of order, in parts that lie far apart, over several blocks."""
    log, growing = SampleLog(tmp_path, 0, 10_000), Growing(tmp_path)
    numbers = list(range(10_000))
    random.Random(7).shuffle(numbers)
    assert len(growing.fresh().records) == 0
    seen = []
    for begin in range(0, 10_000, 1250):
        part = numbers[begin : begin + 1250]
        for number in part:
            written(log, number)
        fresh = growing.fresh()
        assert sorted(fresh.numbers.tolist()) == sorted(part)
        assert fresh.records["start"].tolist() == fresh.numbers.tolist()
        seen += fresh.numbers.tolist()
    assert sorted(seen) == list(range(10_000))
    assert len(growing.fresh().numbers) == 0
    log.close(0)


def test_the_last_look_misses_nothing(tmp_path):
    """A record far from all others may be seen late, but not too late."""
    log, growing = SampleLog(tmp_path, 0, 100_000), Growing(tmp_path)
    written(log, 0)
    assert growing.fresh().numbers.tolist() == [0]
    written(log, 77_777)
    assert growing.fresh(last=True).numbers.tolist() == [77_777]
    assert growing.fresh(last=True).numbers.tolist() == []
    log.close(0)


def test_the_warm_up_is_left_out(tmp_path):
    """Its requests are numbered from below zero."""
    log, growing = SampleLog(tmp_path, -5, 15), Growing(tmp_path)
    for number in range(-5, 3):
        written(log, number)
    assert growing.fresh().numbers.tolist() == [0, 1, 2]
    written(log, 3)
    assert growing.fresh().numbers.tolist() == [3]
    log.close(0)


def test_a_log_that_grows_beyond_what_was_expected_is_read_on(tmp_path):
    """A duration ends the trial, and nobody knew how many there would be."""
    log, growing = SampleLog(tmp_path, 0, 10), Growing(tmp_path)
    for number in range(10):
        written(log, number)
    assert len(growing.fresh().numbers) == 10
    for number in range(10, 9000):
        log.write_late(number, 1.0, 0.25, 7, 200, 0)
    assert growing.fresh().numbers.tolist() == list(range(10, 9000))
    log.close(0)


def test_before_there_is_a_log_there_is_nothing(tmp_path):
    """Nor while its process has only made the file."""
    assert len(Growing(tmp_path).fresh().numbers) == 0
    (tmp_path / "trial.samples").touch()
    assert len(Growing(tmp_path).fresh().numbers) == 0
