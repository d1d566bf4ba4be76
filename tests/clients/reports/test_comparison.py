"""A comparison on the terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
import re

import pytest
from rich.console import Console

from clientlab.judging.comparison import compare
from clientlab.judging.thresholds import change_threshold, judge_changes
from clientlab.reports import comparison
from clientlab.results.figures import COMPARED
from clients.documents import SURROUNDINGS, a_failed_trial, a_run, a_trial

ARMS = ("urllib3", "pycurl")


def a_run_at(pace: float, name: str, **changes):
    """Three rounds of two arms."""
    return a_run(*(a_trial(arm, n, pace * (1 + n / 100), **changes) for arm in ARMS for n in (1, 2, 3)), name=name)


BASE = a_run_at(1.0, "before")
SLOWER = a_run_at(1.5, "after").model_copy(
    update={"surroundings": SURROUNDINGS.model_copy(update={"python": "CPython 3.13.1"})}
)
FAULTY = a_run_at(0.5, "after", errors={"reset": 5})


def judged(comparison, *texts: str):
    """Thresholds held against a comparison."""
    return judge_changes(comparison, [change_threshold(text) for text in texts], strict=False)


def printed(*others, texts=()) -> str:
    """The terminal's report."""
    found = compare(BASE, others)
    console = Console(width=150)
    with console.capture() as capture:
        console.print(comparison.as_text(found, judged(found, *texts)), highlight=False)
    return capture.get()


def line_of(text: str, name: str) -> str:
    """The first line that begins with a figure's name."""
    return next(line for line in text.splitlines() if line.split()[:1] == [name])


def test_the_terminal_names_surroundings_first_then_each_figure_with_its_verdict():
    """Baseline, now, verdict, ratio and interval; at the end how many there are."""
    text = printed(SLOWER)
    assert text.index("python: CPython 3.11.7 -> CPython 3.13.1") < text.index("wall")
    assert line_of(text, "wall").split()[1:6] == ["1.02", "s", "1.53", "s", "slower"]
    assert "x 1.50 (1.42 to 1.58)" in line_of(text, "wall")
    assert "equal" in line_of(text, "memory")
    slower = 2 * sum(figure.key in {"wall", "throughput", "received"} for figure in COMPARED)
    counts = f"0 better, {slower} worse, {2 * len(COMPARED) - slower} equal within 5 %, 0 undecided"
    words = " ".join(text.split())
    assert "A ratio is that of the two medians." in words
    assert re.search(r"the smallest increase that shows in 80 of 100 comparisons is: wall 6\.2\d* %,", words)
    assert f"{2 * len(COMPARED)} figures compared: {counts}." in text


def test_errors_are_told_with_what_they_leave_of_the_other_figures():
    """In percentage points; a wall time that they shortened is not shown as one that can be compared."""
    text = printed(FAULTY)
    assert "more" in line_of(text, "errors")
    assert "+0.500 points" in line_of(text, "errors")
    assert line_of(text, "wall").split()[1:] == ["1.02", "s", "–", "undecided", "–"]
    assert "requests failed in 6 of 6 trials: their totals (wall time, …) are left out" in text


def test_each_run_has_a_column():
    """Headed by its name, where there are several."""
    text = printed(SLOWER, a_run_at(1.0, "again"))
    (head,) = [line for line in text.splitlines() if "baseline" in line and "after" in line]
    assert head.split() == ["baseline", "after", "again"]
    assert ["slower" in line_of(text, "wall"), "undecided" in line_of(text, "wall")] == [True, True]


def test_what_is_missing_in_a_run_is_told():
    """Failed trials and a run that was interrupted."""
    half = a_run(*(a_trial(arm, n) for arm in ARMS for n in (1, 2)), a_failed_trial("urllib3", number=3),
                 name="half").model_copy(update={"status": "incomplete"})  # fmt: skip
    text = printed(half)
    assert "1 of 5 trials failed: only their errors count" in text
    assert "the run is incomplete: it has 5 trials of 3 rounds" in text
    assert "without an interval, which needs 3 rounds of both runs and no lower bounds" in " ".join(text.split())


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ((), []),
        (("wall +60%", "memory +0"), ["all thresholds held (4 checked)"]),
        (
            ("wall +10%",),
            [
                "FAILED: wall +10% · urllib3 · after: wall time +50.0 % (+45.9 % to +54.3 %)",
                "FAILED: wall +10% · pycurl",
            ],
        ),
        (
            ("wall +49%",),
            [
                "NOT SURE: wall +49% · urllib3 · after: wall time +50.0 % (+45.9 % to +54.3 %)",
                "; its interval reaches back",
            ],
        ),
    ],
)
def test_thresholds_are_told_below_the_table(texts, says):
    """Those that failed or are not sure, each with what was found; or that all held."""
    text = " ".join(printed(SLOWER, texts=texts).split())
    for line in says:
        assert line in text
    assert ("FAILED" in text, "NOT SURE" in text) == ("FAILED" in str(says), "NOT SURE" in str(says))


def test_a_threshold_of_errors_tells_of_trials_that_failed():
    """Beside the share of requests, or alone where there is none."""
    assert "FAILED: errors +0.1% · urllib3 · after: share of failed requests +0.500 points" in printed(
        FAULTY, texts=("errors +0.1%",)
    )
    half = a_run(*a_run_at(1.0, "x").trials[:4], a_failed_trial("pycurl", number=2), name="half")
    text = " ".join(printed(half, texts=("errors +0",)).split())
    assert "FAILED: errors +0 · pycurl · half: share of failed requests +0 points, and 1 trial failed" in text


def test_markdown_has_a_table_whose_rows_are_whole():
    """As many cells as the head, with several runs as well; notices above it."""
    found = compare(BASE, [SLOWER, a_run_at(1.0, "a|b")])
    text = comparison.as_markdown(found, judged(found, "wall +10%"))
    table = [line.replace(r"\|", "") for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in table} == {10}
    assert len(table) == 2 + 2 * len(COMPARED)
    assert text.index("- python: CPython 3.11.7 -&gt; CPython 3.13.1") < text.index("| arm |")
    row = r"\| urllib3 \| wall \| 1.02 s \| 1.53 s \| slower \| x 1.50 \(1.\d+ to 1.\d+\) \| 1.02 s \| undecided \|"
    assert re.search(row, text)
    assert "- **FAILED: wall +10% · urllib3 · after: wall time +50.0 % (+44.9 % to +55.3 %)**" in text


def test_json_holds_every_figure_in_base_units():
    """Seconds, bytes, counts and shares; with interval, rounds, verdict, and the thresholds' outcomes."""
    found = compare(BASE, [SLOWER])
    document = json.loads(comparison.as_json(found, judged(found, "wall +10%")))
    assert (document["baseline"], document["runs"][0]["run"]) == ("before", "after")
    assert document["runs"][0]["surroundings"][0] == {
        "part": "python", "before": "CPython 3.11.7", "after": "CPython 3.13.1",
    }  # fmt: skip
    wall = document["runs"][0]["arms"]["urllib3"]["wall"]
    assert (wall["before"], wall["after"], wall["ratio"]) == pytest.approx((1.02, 1.53, 1.5))
    assert wall["interval"][0] < 1.5 < wall["interval"][1]
    assert (wall["unit"], wall["rounds"], wall["verdict"]) == ("seconds", [3, 3], "slower")
    assert {one["outcome"] for one in document["thresholds"]} == {"failed"}
    errors = json.loads(comparison.as_json(compare(BASE, [FAULTY]), []))["runs"][0]["arms"]["urllib3"]["errors"]
    assert (errors["ratio"], errors["difference"]) == (None, pytest.approx(0.005))
