"""Failed requests and trials in reports: lower bounds are shown as such; trials that
ended early count nowhere.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from clientlab.analysis.request_figures import compute_quantiles
from clientlab.judging.comparison import compare
from clientlab.judging.judgement import with_judgement
from clientlab.judging.thresholds import (
    judge_changes,
    judge_run,
    parse_change,
    parse_threshold,
)
from clientlab.reports import as_csv, as_html, as_junit, as_markdown
from clientlab.reports.progress import ProgressLines
from clientlab.reports.rows import figure_table, groups_of
from clientlab.results.figures import FIGURES
from clientlab.results.plan import Claim
from clients.documents import a_run, a_trial, quantiles, with_changes
from clients.reports.views import Page, columns, shown

BOUNDS = ["mean", "p99", "p999", "max"]


def a_timed_trial(
    strategy: str, number: int, answered: list[float], failed: list[float]
):
    """A trial of requests that took these seconds, with 5 ms of them as the requested
    delay.
    """
    good, bad = np.array(answered), np.array(failed)
    return a_trial(
        strategy,
        number,
        requests=len(good) + len(bad),
        errors={"timeout": len(bad)} if failed else {},
        latency_seconds=compute_quantiles(good, bad),
        overhead_seconds=compute_quantiles(good - 0.005, bad - 0.005),
    )


def rounds(strategy: str, failed: int, seconds: float = 0.3) -> list:
    """Three rounds of 1,000 requests, of which `failed` fail after `seconds`; the
    others take about 9 ms.
    """
    return [
        a_timed_trial(
            strategy,
            number,
            [0.009 + number / 1e5] * (1000 - failed),
            [seconds] * failed,
        )
        for number in (1, 2, 3)
    ]


SOUND, FAULTY = rounds("sound", 0), rounds("faulty", 30)
RUN = a_run(*SOUND, *FAULTY)


def test_the_table_shows_a_lower_bound():
    found = columns(RUN)
    assert found["strategy"] == ["sound", "faulty"]
    assert (found["p50"], found["p99"]) == (["9.02 ms"] * 2, ["9.02 ms", "≥ 300 ms"])
    assert "| ≥ 300 ms |" in as_markdown.render(RUN)


def test_a_row_of_csv_marks_its_lower_bounds():
    rows = {row["arm"]: row for row in csv.DictReader(io.StringIO(as_csv.render(RUN)))}
    assert json.loads(rows["faulty"]["latency_at_least"]) == BOUNDS
    assert float(rows["faulty"]["latency_p99_seconds"]) == 0.3
    assert json.loads(rows["faulty"]["overhead_at_least"]) == BOUNDS
    assert json.loads(rows["sound"]["latency_at_least"]) == []


@pytest.mark.parametrize(
    ("before", "after", "verdict", "outcome"),
    [
        (SOUND, FAULTY, "worse", "failed"),  # at least 300 ms is more than 9 ms
        (FAULTY, SOUND, "better", "held"),
        (FAULTY, FAULTY, "undecided", "failed"),
        (
            SOUND,
            rounds("it", 30, 0.001),
            "undecided",
            "failed",
        ),  # at least 9 ms, and perhaps much more
    ],
)
def test_a_comparison_says_only_what_lower_bounds_allow(
    before, after, verdict, outcome
):
    arm = {"arm": "it", "strategy": "it"}
    base, other = (
        a_run(*(with_changes(trial, **arm) for trial in trials))
        for trials in (before, after)
    )
    found = compare(base, [other])
    change = found.others[0].changes["it"]["p99"]
    assert (change.verdict, change.ratio) == (verdict, None)
    (judged_change,) = judge_changes(found, [parse_change("p99 +1000%")], strict=False)
    assert judged_change.outcome == outcome
    median = found.others[0].changes["it"]["p50"]
    assert (median.verdict, median.bounds) == ("equal", (False, False))


def test_a_claim_about_a_lower_bound_is_inconclusive():
    """Even if the rounds without errors would support it: they may show the arm at its
    best.
    """
    claim = Claim(
        name="it", text="It is so", kind="less", figure="p99", a="slow", b="mixed"
    )
    slow = [
        a_trial("slow", number, latency_seconds=quantiles(p99=0.001))
        for number in (1, 2, 3, 4)
    ]
    mixed = [
        with_changes(trial, arm="mixed")
        for trial in (*SOUND, a_timed_trial("mixed", 4, [1.0] * 9, [2]))
    ]
    (found,) = with_judgement(a_run(*slow, *mixed[:3], claims=[claim])).claims
    assert found.verdict == "supported"
    (found,) = with_judgement(a_run(*slow, *mixed, claims=[claim])).claims
    assert found.verdict == "inconclusive"
    assert found.measured.endswith(
        "; without rounds in which requests failed: 1 of mixed"
    )
    assert (
        found.settles
        == "trials of mixed in which fewer requests fail: their 99th percentile of"
        " latency is only a lower bound"
    )


REASON = "its process was ended by SIGKILL"
WHOLE = tuple(a_trial("urllib3", number) for number in (1, 2, 3))
PARTIAL = a_trial(
    "urllib3",
    4,
    0.25,
    status="failed",
    reason=REASON,
    partial=True,
    requests=412,
    errors={"reset": 300},
    requests_per_second=448.0,
    latency_seconds=quantiles(at_least=["mean", "p95", "p99", "max"]),
    measured=None,
    error_examples={"reset": "Connection reset by peer"},
    bound=None,
)
ENDED_EARLY = a_run(*WHOLE, PARTIAL)
CELLS = ("412 of 1,000", "300 reset")


def test_every_report_shows_a_partial_trial_with_its_cause():
    terminal, page = shown(ENDED_EARLY, 200), Page(as_html.render(ENDED_EARLY))
    for text in (terminal, as_markdown.render(ENDED_EARLY), page.section("errors")):
        for cell in (*CELLS, REASON):
            assert cell in text
        assert "partial: 412 requests had finished" in text
    (line,) = (line for line in terminal.splitlines() if "412 of 1,000" in line)
    assert line.split()[:3] == ["urllib3", "(workload,", "aiohttp,"]
    row = list(csv.DictReader(io.StringIO(as_csv.render(ENDED_EARLY))))[-1]
    assert (row["status"], row["partial"], row["requests"]) == ("failed", "True", "412")
    output = io.StringIO()
    progress = ProgressLines(Console(file=output))
    progress.run_started(ENDED_EARLY, Path("results/a run"))
    progress.trial_ended(PARTIAL)
    assert output.getvalue().endswith(
        f"FAILED, {REASON}; partial: 412 requests had finished\n"
    )


def test_a_partial_trial_counts_in_no_figure_and_no_judgement():
    """Not even in the share of errors.

    A threshold fails, because the trial has failed.
    """
    for figure in FIGURES:
        assert figure.values(ENDED_EARLY.trials) == figure.values(WHOLE)
    assert list(map(figure_table, groups_of(ENDED_EARLY))) == list(
        map(figure_table, groups_of(a_run(*WHOLE)))
    )
    changes = compare(a_run(*WHOLE), [ENDED_EARLY]).others[0].changes["urllib3"]
    assert {change.word for change in changes.values()} <= {"equal", "undecided"}
    assert changes["errors"].after == 0
    judged = judge_run(ENDED_EARLY, [parse_threshold("errors > 0")], strict=False)
    assert [one.outcome for one in judged] == ["failed"]
    assert REASON in as_junit.render(ENDED_EARLY, [])
