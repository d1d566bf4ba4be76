"""A comparison on the terminal, as Markdown and as JSON."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from clientlab.judging.comparison import compare
from clientlab.judging.thresholds import judge_changes, parse_change
from clientlab.reports import as_html, as_terminal, change_contents
from clientlab.reports.charts import changes
from clientlab.results.figures import COMPARED
from clients.documents import SURROUNDINGS, a_run, rounds, with_changes

ARMS = ("urllib3", "pycurl")


def a_run_at(pace: float, name: str, **changes):
    walls = [pace * 1.01, pace * 1.02, pace * 1.03]
    first, second = ARMS
    trials = [*rounds(first, *walls, **changes), *rounds(second, *walls, **changes)]
    return a_run(*trials, name=name)


BASE = a_run_at(1.0, "before")
SLOWER = a_run_at(1.5, "after").updated(
    surroundings=SURROUNDINGS.updated(python="CPython 3.13.1")
)
FAULTY = a_run_at(0.5, "after", errors={"reset": 5})


def judged(comparison, *texts: str):
    thresholds = [parse_change(text) for text in texts]
    return judge_changes(comparison, thresholds, strict=False)


def printed(other) -> str:
    sections = change_contents.sections(compare(BASE, [other]), [])
    console = Console(width=150)
    with console.capture() as capture:
        console.print(as_terminal.document(sections), highlight=False)
    return capture.get()


def line_of(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.split()[:1] == [name])


def test_the_terminal_names_surroundings_first_then_each_figure_with_its_verdict():
    text = printed(SLOWER)
    assert text.index("python: CPython 3.11.7 -> CPython 3.13.1") < text.index("wall")
    wall = line_of(text, "wall")
    assert wall.split()[1:7] == ["1.02", "s", "1.53", "s", "✗", "slower"]
    assert "x 1.50 (1.42 to 1.58)" in wall
    assert "equal" in line_of(text, "memory")
    words = " ".join(text.split())
    assert "A ratio divides the figure in a typical round" in words
    assert "Runs may differ by 10.0 % as wholes" in words
    assert "--env base=… --env head=…" in words
    compared = {figure.key for figure in COMPARED if figure.needs is None}
    slower = compared & {"wall", "throughput", "received"}
    equal = compared - slower
    of_two_arms = 2 * len(compared)
    assert (
        f"{of_two_arms} figures compared: 0 better, {2 * len(slower)} worse,"
        f" {2 * len(equal)} equal within 5 %, 0 undecided." in text
    )


def test_errors_are_shown_in_points_and_leave_no_totals_to_compare():
    text = printed(FAULTY)
    assert "more" in line_of(text, "errors")
    assert "+0.500 points" in line_of(text, "errors")
    wall = line_of(text, "wall").split()
    assert wall[1:] == ["1.02", "s", "–", "?", "undecided", "–"]
    assert (
        "requests failed in 6 of 6 trials: their totals (wall time, …) are left out"
        in text
    )


def test_charts_show_the_trend_over_all_compared_runs():
    """A chart for each arm and each of the main figures, with a row for each run in its
    order.
    """
    paces = {"second": 1.2, "third": 1.5, "fourth": 2.0}
    found = compare(BASE, [a_run_at(pace, name) for name, pace in paces.items()])
    charts = {chart.title: chart for chart in changes(found)}
    figures = (
        "requests per second",
        "99th percentile of latency",
        "CPU time per request",
    )
    assert [*charts] == [f"{arm}: {figure}" for arm in ARMS for figure in figures]
    rates = charts["pycurl: requests per second"].rows
    assert [row.name for row in rates] == [*paces]
    for row in rates:
        assert row.dots[0] == pytest.approx(1 / paces[row.name])
    assert rates[2].text.startswith("0.500 (0.4")
    assert rates[2].text.endswith(" slower")
    text = printed(SLOWER)
    page = as_html.render_comparison(BASE, change_contents.sections(found, []))
    assert page.count("<svg") == len(charts)
    assert "pycurl: requests per second" not in text


def test_a_figure_that_neither_run_has_is_left_out():
    unknown = {"peak_pss_bytes": None, "idle_pss_bytes": None}
    trials = [with_changes(trial, **unknown) for trial in SLOWER.trials]
    other = SLOWER.updated(trials=trials)
    without = compare(other.updated(run="base"), [other])
    for table in change_contents.tables(without):
        names = {row[0] for row in table.rows}
        assert "wall" in names
        assert "memory" not in names


def test_json_holds_every_figure_in_base_units():
    found = compare(BASE, [SLOWER])
    document = json.loads(change_contents.as_json(found, judged(found, "wall +10%")))
    (other,) = document["runs"]
    assert document["baseline"] == "before"
    assert other["run"] == "after"
    change = other["surroundings"][0]
    assert [*change.values()] == ["python", "CPython 3.11.7", "CPython 3.13.1"]
    wall = other["arms"]["urllib3"]["wall"]
    assert wall["before"] == pytest.approx(1.02)
    assert wall["after"] == pytest.approx(1.53)
    assert wall["ratio"] == pytest.approx(1.5)
    assert wall["interval"][0] < 1.5 < wall["interval"][1]
    assert wall["unit"] == "seconds"
    assert wall["rounds"] == [3, 3]
    assert wall["verdict"] == "slower"
    for threshold in document["thresholds"]:
        assert threshold["outcome"] == "failed"
    document = json.loads(change_contents.as_json(compare(BASE, [FAULTY]), []))
    (faulty,) = document["runs"]
    errors = faulty["arms"]["urllib3"]["errors"]
    assert errors["ratio"] is None
    assert errors["difference"] == pytest.approx(0.005)
