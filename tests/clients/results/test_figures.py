"""The list of figures: names, values, and what is unknown."""

from __future__ import annotations

import pytest

from clientlab.errors import LabError
from clientlab.results.figures import BY_KEY, FIGURES, find, of_claim
from clientlab.results.trial import (
    Attempts,
    Disturbance,
    HighestRate,
    OpenLoad,
    StreamFigures,
    Window,
)
from clients.documents import a_failed_trial, a_trial, quantiles

KNOWN = a_trial(
    wall=2.0,
    errors={"reset": 250},
    cpu_seconds=0.5,
    idle_pss_bytes=30 << 20,
    overhead_seconds=quantiles(0.001),
    first_byte_seconds=quantiles(0.0015, 0.004),
    elapsed_seconds_sum=1.5,
    bytes_received=3 << 20,
    disturbance=Disturbance(seconds=2.0, run_delay_seconds=0.25),
    open_load=OpenLoad(
        planned_per_second=600.0,
        achieved_per_second=550.0,
        lateness_seconds=quantiles(0.003, 0.007),
        sent_seconds=quantiles(0.001, 0.006),
        dropped=50,
        most_backlog=40,
        most_in_flight=7,
    ),
    stream=StreamFigures(
        events=2000,
        first_event_seconds=quantiles(0.01, 0.011),
        gap_seconds=quantiles(0.012, 0.013),
        lag_seconds=quantiles(0.014, 0.015),
        write_error_seconds=quantiles(0.016, 0.017),
        together_share=0.125,
    ),
    call_late_seconds=0.375,
    tail_seconds=0.5,
    import_seconds=0.25,
    highest_rate=HighestRate(held=900.0, not_held=1600.0),
    attempts=Attempts(
        calls=1000,
        attempts=1500,
        carried_out=900,
        repeated=250,
        kinds={},
        statuses={},
        densest_share=0.125,
    ),
)


def test_every_figure_is_read_from_a_trial():
    """A cold trial has no CPU time per event: most of its CPU time is that of the
    imports.
    """
    found = {figure.key: figure.of(KNOWN) for figure in FIGURES}
    assert found["cpu_per_event"] is None
    warm = KNOWN.updated(measured=KNOWN.measured.updated(import_seconds=None))
    found["cpu_per_event"] = BY_KEY["cpu_per_event"].of(warm)
    expected = {
        "wall": 2.0,
        "tail": 0.5,
        "throughput": 500,
        "time_per_request": 0.002,
        "received": 2 << 20,
        "mean": 0.002,
        "p50": 0.002,
        "p90": 0.002,
        "cpu_per_event": 0.25e-3,
        "first_event_p50": 0.01,
        "first_event_p99": 0.011,
        "gap_p50": 0.012,
        "gap_p99": 0.013,
        "lag_p50": 0.014,
        "lag_p99": 0.015,
        "write_error_p50": 0.016,
        "write_error_p99": 0.017,
        "together": 0.125,
        "events": 2000,
        "p95": 0.009,
        "first_byte_p50": 0.0015,
        "first_byte_p99": 0.004,
        "import": 0.25,
        "first_response": 2.0,
        "cpu_wait": 0.25e-3,
        "planned_rate": 600,
        "achieved_rate": 550,
        "late_p50": 0.003,
        "late_p99": 0.007,
        "sent_p50": 0.001,
        "sent_p99": 0.006,
        "dropped": 0.05,
        "backlog": 40,
        "highest_rate": 1200,
        "p99": 0.009,
        "p999": 0.009,
        "max": 0.009,
        "overhead": 0.001,
        "elapsed": 1.5,
        "errors": 0.25,
        "attempts": 1.5,
        "duplicates": 0.25,
        "densest": 0.125,
        "limit_late": 0.375,
        "connections": 1,
        "reuse": 1000,
        "cpu": 0.5 / 750,
        "cpu_total": 0.5,
        "memory": 32 << 20,
        "rss": 40 << 20,
        "above_idle": 2 << 20,
    }
    assert {key: found[key] for key in expected} == expected
    assert None not in found.values()


def test_cpu_time_per_request_is_that_of_the_steady_part():
    """Of 1,000 requests, 100 failed. The steady part has 800 of them."""
    window = Window(
        slots=1,
        wave_seconds=0.001,
        cycles=800,
        cycle_seconds=0.8,
        ended=800,
        seconds=0.8,
    )
    steady = {"windows": [window], "steady_cpu_seconds": 0.18, "steady_requests": 800}
    trial = a_trial("urllib3", cpu_seconds=0.5, errors={"reset": 100}, **steady)
    assert BY_KEY["cpu"].of(trial) == pytest.approx(0.18 / 720)


def test_what_a_trial_does_not_have_is_unknown_and_not_0():
    nothing = a_failed_trial("urllib3")
    for figure in FIGURES:
        assert (figure.of(nothing), figure.over_rounds([nothing])) == (None, None), (
            figure.key
        )
    no_success = a_trial(requests=9, errors={"connect": 9}, cpu_seconds=0.5)
    assert BY_KEY["cpu"].of(no_success) is None


def test_over_rounds_a_figure_is_the_median_of_the_finished_trials_that_have_it():
    trials = [
        a_trial(number=n, connections_opened=count)
        for n, count in enumerate((1, None, 2, 50), 1)
    ]
    failed = a_trial(status="failed", errors={"connect": 1000}, connections_opened=7000)
    assert BY_KEY["connections"].over_rounds([*trials, failed]) == 2
    assert BY_KEY["errors"].over_rounds([*trials, failed]) == 0.2


def test_a_figure_is_found_by_its_key_and_by_its_full_name():
    names = [name for figure in FIGURES for name in {figure.key, figure.name}]
    assert len(set(names)) == len(names)
    for figure in FIGURES:
        assert find(figure.key, "x") is find(figure.name, "x") is figure
    assert of_claim("peak_pss_bytes") is of_claim("memory")
    with pytest.raises(LabError, match="fail_on: 'p98'"):
        find("p98", "fail_on")
    for name in ("p98", "errors"):
        with pytest.raises(ValueError, match=name):
            of_claim(name)
