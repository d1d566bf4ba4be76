"""Samples that are kept: every request of a trial, readable in one line."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.results.kept_samples import write
from clientlab.samples.log_reader import RECORD, Samples
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload
from clients.documents import a_trial


def test_each_column_has_every_request_in_the_order_of_its_start(tmp_path):
    """One request succeeded, one was reset, one raised what has no kind of its own."""
    records = np.zeros(3, RECORD)
    records["start"], records["seconds"] = [100.5, 101.0, 103.0], [0.25, 0.5, 1.0]
    records["elapsed"] = [0.125, 0.25, 0.5]
    records["bytes"], records["status"], records["error"] = [150, 0, 0], [200, 0, 0], [0, 6, 64]
    samples = Samples(records, np.array([7, 5, 9]), {}, {}, {6: "reset", 64: "other:Odd"})
    workload = Workload(requests=3, delay=Delay.parse("100ms"), elapsed=True)
    kept = write(tmp_path, a_trial("urllib3", 2, order=3), workload, samples, 100.0)
    expected = {
        "trial": [3, 3, 3], "arm": ["urllib3"] * 3, "round": [2, 2, 2], "number": [7, 5, 9],
        "start_seconds": [0.5, 1.0, 3.0], "seconds": [0.25, 0.5, 1.0], "status": [200, 0, 0],
        "error": ["", "reset", "other:Odd"], "bytes": [150, 0, 0], "delay_seconds": [0.1] * 3,
        "overhead_seconds": [0.15, 0.4, 0.9], "elapsed_seconds": [0.125, 0.25, 0.5],
    }  # fmt: skip
    with np.load(kept) as columns:
        told = {name: columns[name].tolist() for name in columns.files}
    assert told.keys() == expected.keys()
    for name, values in expected.items():
        assert told[name] == (pytest.approx(values) if name.endswith("seconds") else values), name
    assert [path.name for path in kept.parent.iterdir()] == ["trial-0003.npz"]
