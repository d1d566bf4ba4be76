"""Histories as metrics: the typical level of each part of a history, and its changes."""

from __future__ import annotations

import pytest

from clientlab.service import history_metrics
from clients.histories import a_history


def filled(runs):
    """The metrics of the histories of these runs."""
    found = history_metrics.families()
    history_metrics.fill(found, runs)
    return found


def test_a_change_is_a_step_of_the_typical_level_and_a_sample_of_its_run():
    """Each run of a part has the part's level; only the first run of a new level has a change."""
    runs = a_history(slower=1.15)
    found = filled(runs)
    (change,) = found["change"].samples
    assert (change.labels["run"], change.labels["arm"]) == (runs[10].run, "urllib3")
    assert (change.labels["figure"], change.labels["verdict"]) == ("throughput", "slower")
    assert change.value == pytest.approx(1 / 1.15, rel=0.03)
    levels = {
        one.labels["run"]: one.value
        for one in found["typical_level"].samples
        if (one.labels["arm"], one.labels["figure"]) == ("urllib3", "throughput")
    }
    assert len({levels[run.run] for run in runs[:10]}) == len({levels[run.run] for run in runs[10:]}) == 1
    assert levels[runs[0].run] > levels[runs[-1].run]


def test_an_experiment_with_many_arms_has_no_history_in_a_scrape(monkeypatch):
    """It would take seconds."""
    monkeypatch.setattr(history_metrics, "MOST_ARMS", 3)
    assert filled(a_history(3))["typical_level"].samples == []
