"""What a trial records of the phases of its requests."""

from __future__ import annotations

import json

import pytest

from clientlab.measuring.phases import MOST_KEPT, Phases


def test_counts_and_means_are_exact_where_not_all_values_are_kept(tmp_path):
    """The kept ones are a sample of all, so that late requests count as much as early ones. A warm-up is in neither."""
    found = Phases()
    found.add("body", 1000.0)
    with found.recorded(str(tmp_path / "phases")):
        for number in range(2 * MOST_KEPT):
            found.add("body", float(number >= MOST_KEPT))
    (file,) = tmp_path.iterdir()
    body = json.loads(file.read_text())["body"]
    assert (body["count"], body["total"]) == (2 * MOST_KEPT, MOST_KEPT)
    assert len(body["kept"]) == MOST_KEPT
    assert sum(body["kept"]) / MOST_KEPT == pytest.approx(0.5, abs=0.01)
