"""The section on faults: words of cells, and the answer of a run whose axis is faults."""

from __future__ import annotations

import pytest

from clientlab.reports.fault_section import ArmFault, tone_of
from clientlab.results.fault_counts import MetFault


def a_fault(met, made=7, fault="idle-close", beside=0) -> ArmFault:
    """Of seven requests."""
    return ArmFault("arm", fault, MetFault(asked=7, met=met, failed_seconds=0.014), made, None, beside, hangs=False)


@pytest.mark.parametrize(
    ("found", "cell", "tone"),
    [
        (a_fault({"none": 7}), "ok", "good"),
        (a_fault({"none": 5, "reset": 2}), "2 of 7 failed · 7.00 ms", "open"),
        (a_fault({"none": 5, "reset": 2}, beside=3), "2 of 7 failed · 7.00 ms · 3 lost beside", "bad"),
        (a_fault({"none": 2, "reset": 5}), "reset · 2.80 ms", "good"),
        (a_fault({"none": 7}, fault="truncated"), "unnoticed", "bad"),
        (a_fault({"none": 7}, made=9, fault="truncated"), "sent again", "open"),
    ],
    ids=["ok", "some failed", "some failed and others beside", "most failed", "unnoticed", "sent again"],
)
def test_a_cell_hides_no_failed_request(found, cell, tone):
    """Where most requests succeeded, it counts the others."""
    assert found.cell == cell
    assert tone_of(found.cell) == tone
