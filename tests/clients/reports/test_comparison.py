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
from clients.documents import SURROUNDINGS, a_run, a_trial

ARMS = ("urllib3", "pycurl")


def a_run_at(pace: float, name: str, **changes):
    return a_run(
        *(
            a_trial(arm, n, pace * (1 + n / 100), **changes)
            for arm in ARMS
            for n in (1, 2, 3)
        ),
        name=name,
    )


BASE = a_run_at(1.0, "before")
SLOWER = a_run_at(1.5, "after").updated(
    surroundings=SURROUNDINGS.updated(python="CPython 3.13.1")
)
FAULTY = a_run_at(0.5, "after", errors={"reset": 5})


def judged(comparison, *texts: str):
    return judge_changes(
        comparison, [parse_change(text) for text in texts], strict=False
    )


def printed(*others, texts=()) -> str:
    found = compare(BASE, others)
    console = Console(width=150)
    with console.capture() as capture:
        console.print(
            as_terminal.document(
                change_contents.sections(found, judged(found, *texts))
            ),
            highlight=False,
        )
    return capture.get()


def line_of(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.split()[:1] == [name])


def test_the_terminal_names_surroundings_first_then_each_figure_with_its_verdict():
    text = printed(SLOWER)
    assert text.index("python: CPython 3.11.7 -> CPython 3.13.1") < text.index("wall")
    assert line_of(text, "wall").split()[1:7] == [
        "1.02",
        "s",
        "1.53",
        "s",
        "✗",
        "slower",
    ]
    assert "x 1.50 (1.42 to 1.58)" in line_of(text, "wall")
    assert "equal" in line_of(text, "memory")
    compared = [figure for figure in COMPARED if figure.needs is None]
    slower = 2 * sum(
        figure.key in {"wall", "throughput", "received"} for figure in compared
    )
    counts = (
        f"0 better, {slower} worse, {2 * len(compared) - slower} equal within 5 %, 0"
        " undecided"
    )
    words = " ".join(text.split())
    assert "A ratio divides the figure in a typical round" in words
    assert "Runs may differ by 10.0 % as wholes" in words
    assert "--env base=… --env head=…" in words
    assert f"{2 * len(compared)} figures compared: {counts}." in text


def test_errors_are_shown_in_points_and_leave_no_totals_to_compare():
    text = printed(FAULTY)
    assert "more" in line_of(text, "errors")
    assert "+0.500 points" in line_of(text, "errors")
    assert line_of(text, "wall").split()[1:] == [
        "1.02",
        "s",
        "–",
        "?",
        "undecided",
        "–",
    ]
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
    assert [row.dots[0] for row in rates] == pytest.approx(
        [1 / pace for pace in paces.values()]
    )
    assert rates[2].text.startswith("0.500 (0.4")
    assert rates[2].text.endswith(" slower")
    text = printed(SLOWER)
    page = as_html.render_comparison(BASE, change_contents.sections(found, []))
    assert page.count("<svg") == len(charts)
    assert "pycurl: requests per second" not in text


def test_a_figure_that_neither_run_has_is_left_out():
    other = SLOWER.updated(trials=[one.updated(measured=None) for one in SLOWER.trials])
    without = compare(other.updated(run="base"), [other])
    assert {"wall", "memory"} & {
        row[0] for table in change_contents.tables(without) for row in table.rows
    } == {"wall"}


def test_json_holds_every_figure_in_base_units():
    found = compare(BASE, [SLOWER])
    document = json.loads(change_contents.as_json(found, judged(found, "wall +10%")))
    (other,) = document["runs"]
    assert document["baseline"] == "before"
    assert other["run"] == "after"
    assert list(other["surroundings"][0].values()) == [
        "python",
        "CPython 3.11.7",
        "CPython 3.13.1",
    ]
    wall = other["arms"]["urllib3"]["wall"]
    assert (wall["before"], wall["after"], wall["ratio"]) == pytest.approx(
        (1.02, 1.53, 1.5)
    )
    assert wall["interval"][0] < 1.5 < wall["interval"][1]
    assert wall["unit"] == "seconds"
    assert wall["rounds"] == [3, 3]
    assert wall["verdict"] == "slower"
    assert {one["outcome"] for one in document["thresholds"]} == {"failed"}
    errors = json.loads(change_contents.as_json(compare(BASE, [FAULTY]), []))["runs"][
        0
    ]["arms"]["urllib3"]["errors"]
    assert errors["ratio"] is None
    assert errors["difference"] == pytest.approx(0.005)
