"""Where requests wait: the client's samples beside the upstream's trace."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from clientlab.analysis.waits import Trace, find_waits
from clientlab.observing.samples import RECORD, Samples
from clientlab.workload.values import Delay
from clientlab.workload.workload import make_workload

COUNT = 50
USUAL = 0.001


def samples_of(starts, seconds, **more) -> Samples:
    records = np.zeros(len(starts), RECORD)
    records["start"], records["seconds"], records["done"] = starts, seconds, 1
    return Samples(records, np.arange(len(starts)), {}, {}, {}, **more)


@pytest.mark.parametrize("slow", ["late", "to_handler", "in_handler", "to_read"])
def test_a_wait_of_20_ms_is_found_in_its_part_and_the_parts_add_up(slow):
    parts = dict.fromkeys(("late", "to_handler", "in_handler", "to_read"), USUAL)
    parts[slow] = 0.020
    planned = 1000.0 + np.arange(COUNT) / 10
    starts = planned + parts["late"]
    began = starts + parts["to_handler"]
    ended = began + parts["in_handler"]
    samples = samples_of(
        starts, ended + parts["to_read"] - starts, schedule_began=1000.0
    )
    trace = dict(enumerate(zip(began.tolist(), ended.tolist(), strict=True)))
    found = find_waits(samples, make_workload(rate=10.0, requests=COUNT), trace)
    means = {name: getattr(found, name).mean for name in parts}
    assert means == pytest.approx(parts, abs=1e-6)
    assert sum(means.values()) == pytest.approx(found.latency.mean)


def test_the_most_requests_at_the_server_and_what_was_asked_of_it():
    """Eight are sent at once, and two by two reach the handler, which holds them."""
    turns = np.arange(8) // 2
    trace = {k: (5.0 + turn * 0.1, 5.1 + turn * 0.1) for k, turn in enumerate(turns)}
    workload = make_workload(requests=8, concurrency=8, delay=Delay.parse("100ms"))
    found = find_waits(samples_of([5.0] * 8, 0.1 + turns * 0.1), workload, trace)
    assert (found.most_at_server, found.late) == (2, None)
    assert found.mean_at_server == pytest.approx(2.0)
    assert found.asked.p50 == pytest.approx(0.1)
    assert found.to_handler.p99 == pytest.approx(0.3, abs=0.001)


@pytest.mark.parametrize("one_loop", [True, False])
def test_a_stall_is_the_time_without_an_event_while_an_answer_is_there(one_loop):
    """The second request blocks from 1.010 on; answers are there from 1.005 on."""
    trace = {0: (1.0, 1.005), 1: (1.001, 1.005)}
    samples = samples_of([1.0, 1.0], [0.010, 0.060])
    found = find_waits(samples, make_workload(requests=2), trace, one_loop=one_loop)
    stall = pytest.approx(0.05) if one_loop else None
    assert found.longest_stall == stall


def test_without_a_trace_the_parts_at_the_server_are_unknown():
    found = find_waits(samples_of([1.0], [0.5]), make_workload(requests=1), {})
    assert (found.latency.p50, found.to_handler, found.most_at_server) == (
        0.5,
        None,
        None,
    )


def test_a_trace_holds_what_was_logged_since_it_was_opened(tmp_path):
    log = tmp_path / "7.trace"
    record = struct.Struct("<qqq")
    log.write_bytes(record.pack(1, 0, 1))
    trace = Trace(tmp_path)
    with log.open("ab") as file:
        file.write(record.pack(2, 10**9, 2 * 10**9) + b"half")
    assert trace.read() == {2: (1.0, 2.0)}
