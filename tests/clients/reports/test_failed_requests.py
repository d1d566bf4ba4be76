"""Failed requests in every report of a run: a quantile that falls on them is a lower bound, and is shown as one."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from clientlab.judging.claim_verdicts import judged
from clientlab.judging.comparison import compare
from clientlab.judging.thresholds import judge_changes, judge_run, parse_change, parse_threshold
from clientlab.reports import as_csv, as_junit, as_markdown
from clientlab.reports.headline import sentence
from clientlab.results.plan import Claim
from clientlab.running.quantiles import quantiles_of
from clients.documents import a_run, a_trial, quantiles
from clients.reports.test_table import columns

BOUNDS = ["mean", "p99", "p999", "max"]


def a_timed_trial(strategy: str, number: int, answered: list[float], failed: list[float]):
    """A trial of requests that took these seconds, with 5 ms of them as the requested delay."""
    good, bad = np.array(answered), np.array(failed)
    return a_trial(
        strategy, number, requests=len(good) + len(bad), errors={"timeout": len(bad)} if failed else {},
        latency_seconds=quantiles_of(good, bad), overhead_seconds=quantiles_of(good - 0.005, bad - 0.005),
    )  # fmt: skip


def rounds(strategy: str, failed: int, seconds: float = 0.3) -> list:
    """Three rounds of 1,000 requests, of which so many fail after so many seconds; the others take about 9 ms."""
    return [
        a_timed_trial(strategy, number, [0.009 + number / 1e5] * (1000 - failed), [seconds] * failed)
        for number in (1, 2, 3)
    ]


SOUND, FAULTY = rounds("sound", 0), rounds("faulty", 30)
RUN = a_run(*SOUND, *FAULTY)


def test_the_table_shows_a_lower_bound():
    """The median lies below the failures and is exact."""
    found = columns(RUN)
    assert found["strategy"] == ["sound", "faulty"]
    assert (found["p50"], found["p99"]) == (["9.02 ms"] * 2, ["9.02 ms", "≥ 300 ms"])
    assert "| ≥ 300 ms |" in as_markdown.render(RUN)


def test_a_row_of_csv_marks_its_lower_bounds():
    """In a column of its own, so that the values stay numbers."""
    rows = {row["arm"]: row for row in csv.DictReader(io.StringIO(as_csv.render(RUN)))}
    assert json.loads(rows["faulty"]["latency_at_least"]) == BOUNDS
    assert float(rows["faulty"]["latency_p99_seconds"]) == 0.3
    assert json.loads(rows["faulty"]["overhead_at_least"]) == BOUNDS
    assert json.loads(rows["sound"]["latency_at_least"]) == []


def test_a_lower_bound_fails_every_limit():
    """Even one far above it: the true value is not known. A figure that is exact is judged by its value."""
    outcomes = {
        (one.threshold.text, one.arm): one
        for text in ("p99 > 100ms", "p99 > 10s", "p50 > 100ms")
        for one in judge_run(RUN, [parse_threshold(text)])
    }
    assert {key: one.outcome for key, one in outcomes.items()} == {
        ("p99 > 100ms", "sound"): "held", ("p99 > 100ms", "faulty"): "failed",
        ("p99 > 10s", "sound"): "held", ("p99 > 10s", "faulty"): "failed",
        ("p50 > 100ms", "sound"): "held", ("p50 > 100ms", "faulty"): "held",
    }  # fmt: skip
    failed = outcomes["p99 > 10s", "faulty"]
    assert sentence(failed).endswith("99th percentile of latency ≥ 300 ms, a lower bound: it falls on failed requests")
    assert "≥ 300 ms, a lower bound" in as_junit.render(RUN, [failed])


def a_comparison(before: list, after: list):
    arm = {"arm": "it", "strategy": "it"}
    runs = [a_run(*(trial.model_copy(update=arm) for trial in trials)) for trials in (before, after)]
    return compare(runs[0], [runs[1]])


@pytest.mark.parametrize(
    ("before", "after", "verdict", "outcome"),
    [
        (SOUND, FAULTY, "worse", "failed"),  # at least 300 ms is more than 9 ms
        (FAULTY, SOUND, "better", "held"),
        (FAULTY, FAULTY, "undecided", "failed"),
        (SOUND, rounds("it", 30, 0.001), "undecided", "failed"),  # at least 9 ms, and perhaps much more
    ],
)
def test_a_comparison_says_only_what_lower_bounds_allow(before, after, verdict, outcome):
    """No ratio, and a verdict only against the run that has the bound. A threshold fails unless it is good."""
    found = a_comparison(before, after)
    change = found.others[0].changes["it"]["p99"]
    assert (change.verdict, change.ratio) == (verdict, None)
    (judged_change,) = judge_changes(found, [parse_change("p99 +1000%")], strict=False)
    assert judged_change.outcome == outcome
    median = found.others[0].changes["it"]["p50"]
    assert (median.verdict, median.bounds) == ("equal", (False, False))


def test_a_claim_about_a_lower_bound_is_inconclusive():
    """Though two rounds without an error would support it; those may be the arm at its best."""
    claim = Claim(name="it", text="It is so", kind="less", figure="p99", a="slow", b="mixed")
    slow = [a_trial("slow", number, latency_seconds=quantiles(p99=0.001)) for number in (1, 2, 3, 4)]
    mixed = [trial.model_copy(update={"arm": "mixed"}) for trial in (*SOUND, a_timed_trial("mixed", 4, [1.0] * 9, [2]))]
    (found,) = judged(a_run(*slow, *mixed[:3], claims=[claim]))
    assert found.verdict == "supported"
    (found,) = judged(a_run(*slow, *mixed, claims=[claim]))
    assert found.verdict == "inconclusive"
    assert found.measured.endswith("; without rounds in which requests failed: 1 of mixed")
    assert found.settles == (
        "trials of mixed in which fewer requests fail: their 99th percentile of latency is only a lower bound"
    )
