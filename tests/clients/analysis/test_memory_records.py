"""Recorded allocations by package and function, from stacks with known frames."""

from __future__ import annotations

import json

import pytest

from clientlab.analysis.attribution import attributed
from clientlab.analysis.memory_records import Allocations, recording_of

FRAMES = [
    ["main", "/venv/lib/python3.13/site-packages/clientlab/measuring/trial_process.py"],
    ["urlopen", "/venv/lib/python3.13/site-packages/urllib3/connectionpool.py"],
    ["begin", "/usr/lib/python3.13/http/client.py"],
    ["__init__", "<string>"],
]


def test_allocations_are_summed_by_the_function_that_made_them():
    """Generated code counts for the package that called it. A thread without Python has no function."""
    allocated = [([0, 1], 100, 2), ([0, 1, 2], 700, 3), ([0, 1, 3], 50, 1), ([], 10, 1)]
    found = recording_of(
        json.dumps({"frames": FRAMES, "peak": [([0, 1], 30), ([0, 1, 2], 70)], "allocated": allocated}).encode()
    )
    assert found.whole == Allocations(860, 7)
    assert found.by_package() == {
        "http": Allocations(700, 3), "urllib3": Allocations(150, 3), "unknown": Allocations(10, 1),
    }  # fmt: skip
    assert list(found.by_function()) == [
        ("begin", "http"), ("urlopen", "urllib3"), ("__init__", "urllib3"), ("no Python function", "unknown"),
    ]  # fmt: skip
    assert attributed(found.peak).packages == {"http": pytest.approx(0.7), "urllib3": pytest.approx(0.3)}


@pytest.mark.parametrize("damaged", [{}, {"frames": FRAMES, "peak": [([9], 1)], "allocated": []}])
def test_damaged_records_are_named(damaged):
    """The process that reads them may have ended early."""
    with pytest.raises(ValueError, match="can't be read"):
        recording_of(json.dumps(damaged).encode())
