"""Comparisons of runs: what is called a change, which runs can be compared, and how
their surroundings differ.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.simulated_runs import calls_a_change, compare_drawn

from clientlab.errors import LabError
from clientlab.judging.comparison import compare, compare_surroundings
from clientlab.results.figures import BY_KEY, COMPARED
from clientlab.workload.values import Delay, Link
from clientlab.workload.workload import make_workload
from clients.documents import (
    SURROUNDINGS,
    a_failed_trial,
    a_run,
    a_trial,
    quantiles,
    rounds,
    with_changes,
)

SPREAD = (0.98, 1.0, 1.02)
OTHER_MACHINE = SURROUNDINGS.updated(host="elsewhere")


def a_run_at(
    pace: float, name: str = "now", arms=("urllib3",), count: int = 3, **changes
):
    """A run whose trials take `pace` seconds, give or take 2 %, in so many rounds."""
    walls = [pace * SPREAD[number % 3] for number in range(1, count + 1)]
    trials = []
    for arm in arms:
        trials += rounds(arm, *walls, **changes)
    return a_run(*trials, name=name)


def changes_of(before, after, *figures: str, **options):
    """The changes of the arm urllib3.

    `figures`: keys of those to compare beside the usual ones.
    """
    found = compare(before, [after], [BY_KEY[key] for key in figures], **options)
    return found.others[0].changes["urllib3"]


@pytest.mark.parametrize(
    ("pace", "wall", "throughput"),
    [
        (1.5, "slower", "slower"),
        (0.6, "faster", "faster"),
        (1.01, "undecided", "undecided"),
        (1.12, "less than runs may", "less than runs may"),
    ],
)
def test_a_change_is_called_what_it_is(pace, wall, throughput):
    found = changes_of(a_run_at(1.0), a_run_at(pace))
    assert found["wall"].word == wall
    assert found["throughput"].word == throughput
    ratio = found["wall"].ratio
    assert ratio.value == pytest.approx(pace)
    assert ratio.low < pace < ratio.high
    assert found["throughput"].ratio.value == pytest.approx(1 / pace)
    assert found["memory"].word == "equal"


def on_day(day: int, run):
    return run.updated(run=f"day {day}", created=f"2024-05-{day:02}T07:08:09+00:00")


@pytest.mark.parametrize(("growth", "word"), [(0.003, "equal"), (0.03, "more")])
def test_memory_that_grew_by_much_less_than_one_percent_did_not_grow(growth, word):
    """Earlier runs hardly differ in memory, so a change of 0.3 % is sure, and means
    nothing.
    """

    def a_run_with(memory: float):
        held = round(memory * (40 << 20))
        trials = [
            a_trial("urllib3", number, peak_pss_bytes=held + number)
            for number in (1, 2, 3)
        ]
        return a_run(*trials)

    runs = [
        on_day(day, a_run_with(1 + noise))
        for day, noise in enumerate((0, 1e-4, -1e-4, 2e-4, -2e-4), start=1)
    ]
    now = on_day(9, a_run_with(1 + growth))
    change = changes_of(runs[4], now, earlier=runs)["memory"]
    assert change.word == word
    assert change.earlier == 5
    assert change.ratio.low > 1


def test_the_wall_time_of_trials_with_a_duration_is_no_result():
    workloads = {"workload": make_workload(duration=1.0)}
    before = a_run(*a_run_at(1.0).trials, workloads=workloads)
    after = a_run(*a_run_at(1.5).trials, workloads=workloads)
    found = compare(before, [after])
    assert "wall" not in {figure.key for figure in found.figures}
    assert found.others[0].changes["urllib3"]["throughput"].word == "slower"


def test_changes_are_in_the_units_of_their_figures():
    """Medians of both runs; CPU time per successful request; errors as a share, which
    has a difference and no ratio.
    """
    worse = a_run_at(
        1.0,
        latency_seconds=quantiles(0.004, 0.018),
        cpu_seconds=1.0,
        connections_opened=130,
        errors={"reset": 100},
    )
    found = changes_of(a_run_at(1.0), worse, "p95")
    assert set(found) == {*(figure.key for figure in COMPARED), "p95"}
    expected = {
        "p50": (0.002, 0.004, "slower"),
        "p95": (0.009, 0.018, "slower"),
        "cpu": (0.0005, 1.0 / 900, "more"),
        "connections": (1, 130, "more"),
        "errors": (0, 0.1, "more"),
    }
    for key, (before, after, word) in expected.items():
        assert found[key].before == before
        assert found[key].after == pytest.approx(after)
        assert found[key].word == word
    assert found["errors"].ratio is None
    assert found["errors"].difference.value == pytest.approx(0.1)


def test_with_fewer_than_three_rounds_nothing_can_be_said():
    found = changes_of(a_run_at(1.0), a_run_at(9.0, count=2))
    assert {change.word for change in found.values()} == {"undecided"}
    assert found["wall"].ratio.low is None
    assert found["wall"].rounds == (3, 2)


@pytest.mark.parametrize(("spread", "word"), [(0.01, "slower"), (0.1, "undecided")])
def test_earlier_runs_tell_how_much_runs_differ(spread, word):
    """Five of them, of the same plan on the same machine.

    `spread`: between two of them.
    """
    paces = [1.0, 1.0 + spread, 1.0 - spread, 1.0 + 2 * spread, 1.0 - 2 * spread]
    runs = [on_day(day, a_run_at(pace)) for day, pace in enumerate(paces, start=1)]
    now = on_day(9, a_run_at(1.3))
    change = changes_of(runs[4], now, earlier=runs)["wall"]
    assert change.word == word
    assert change.earlier == 5
    assert change.ratio.value == pytest.approx(1.3, rel=0.03)
    before_its_baseline = on_day(8, runs[4])
    change = changes_of(now, before_its_baseline, earlier=runs)["wall"]
    assert change.earlier == 0
    elsewhere = [run.updated(surroundings=OTHER_MACHINE) for run in runs[:4]]
    change = changes_of(runs[4], now, earlier=[*elsewhere, runs[4]])["wall"]
    assert change.earlier == 0


def test_errors_of_trials_that_failed_are_counted():
    dead = [
        a_failed_trial("urllib3", number=n, requests=1000, errors={"connect": 1000})
        for n in (2, 3, 4, 5)
    ]
    found = changes_of(a_run_at(1.0, count=5), a_run(a_trial("urllib3"), *dead))
    errors = found["errors"]
    assert errors.after == 0.8
    assert errors.difference.value == 0.8
    assert errors.rounds == (5, 5)
    assert found["wall"].rounds == (5, 1)


def test_a_wall_time_that_errors_shortened_is_not_called_faster():
    """If half of the requests fail at once, that is half of the work.

    The wall times of other trials still count.
    """
    sound = a_run_at(1.0)
    halves = rounds(
        "urllib3", 0.5, 0.5, 0.5, errors={"reset": 500}, requests_per_second=1000
    )
    faulty = a_run(*halves)
    for found in (changes_of(sound, faulty), changes_of(faulty, sound)):
        assert found["wall"].word == "undecided"
        assert found["wall"].ratio is None
        assert found["throughput"].ratio.value == pytest.approx(1, rel=0.02)
    slower = a_run_at(2.0, count=4)
    with_a_fault = a_run(*slower.trials, with_changes(halves[0], round=5))
    change = changes_of(sound, with_a_fault)["wall"]
    assert change.word == "slower"
    assert change.rounds == (3, 4)


@pytest.mark.parametrize(("arms", "count"), [(1, 8), (4, 3)])
def test_identical_runs_are_called_different_in_5_of_100_tables_at_most(arms, count):
    """With three sampling errors; `scripts/bench truth` draws more pairs of runs."""
    draw = np.random.default_rng([arms, count])
    called = 0
    for _ in range(100):
        logs = draw.normal(0, 0.03, (6 * arms, 2 * count))
        called += calls_a_change(compare_drawn(logs, arms))
    assert called / 100 <= 0.05 + 3 * 0.022


def other_workload(**changes):
    workload = make_workload(requests=1000, **changes)
    return a_run(*a_run_at(1.0).trials, name="now", workloads={"workload": workload})


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (
            other_workload(delay=Delay.parse("5ms")),
            "workload 'workload' has delay None and 5ms",
        ),
        (a_run_at(1.0, arms=("urllib3", "pycurl")), "only now has arm 'pycurl'"),
        (a_run_at(1.0, route="proxy"), "arm 'urllib3' has route 'direct' and 'proxy'"),
        (a_run_at(1.0, concurrency=8), "arm 'urllib3' has concurrency 1 and 8"),
        (
            a_run_at(1.0, link=Link(0.1, 2e7)),
            "arm 'urllib3' has link None and 100 ms, 20 Mbit/s",
        ),
    ],
)
def test_unlike_runs_are_refused_unless_forced(other, says):
    before = a_run_at(1.0, "before")
    expected = f"runs before and now are not alike: .*{says}.*force compares"
    with pytest.raises(LabError, match=expected):
        compare(before, [other])
    (found,) = compare(before, [other], force=True).others
    assert found.unlike
    assert found.changes["urllib3"]["wall"].word == "undecided"


@pytest.mark.parametrize(
    "changes", [{"deadline": 60.0}, {"replay": "/elsewhere/requests.jsonl"}]
)
def test_a_deadline_or_the_folder_of_a_recording_is_no_part_of_the_work(changes):
    (found,) = compare(a_run_at(1.0), [other_workload(**changes)]).others
    assert found.unlike == []


def test_runs_without_an_arm_in_common_are_refused_even_when_forced():
    other = a_run_at(1.0, arms=("pycurl",))
    with pytest.raises(LabError, match="runs now and now have no arm in common"):
        compare(a_run_at(1.0), [other], force=True)


def test_surroundings_that_differ_are_told_by_name():
    """A few pages of memory do not count, nor does the load average."""

    def run(**changes):
        return a_run_at(1.0).updated(surroundings=SURROUNDINGS.updated(**changes))

    before = run(
        libraries={"urllib3": "2.5", "h2": "4"}, programs={"flask": "gunicorn"}
    )
    after = run(
        cpu_model="B",
        python="CPython 3.13.1",
        libraries={"urllib3": "2.6", "h2": "4", "uvloop": "1"},
        programs={"flask": "werkzeug"},
        memory_bytes=(1 << 30) + 4096,
        load_average=9,
    )
    found = compare_surroundings(before, after)
    assert {change.part: (change.before, change.after) for change in found} == {
        "cpu model": ("A CPU", "B"),
        "python": ("CPython 3.11.7", "CPython 3.13.1"),
        "urllib3": ("2.5", "2.6"),
        "uvloop": (None, "1"),
        "flask": ("gunicorn", "werkzeug"),
    }
    assert compare_surroundings(before, before) == []
