"""The section on faults: a sentence for each arm, what both sides saw, and a chart."""

from __future__ import annotations

import pytest

from clientlab.judging.ranking import rank_arms
from clientlab.reports.failing import faults
from clientlab.reports.rows import Report
from clientlab.reports.sections import Charts, Lines, RowChart, Tables
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Attempts, Recovery, Slice
from clientlab.workload.faults import Faults
from clientlab.workload.workload import make_workload
from clients.documents import a_run, a_trial
from clients.reports.views import shown

WORKLOADS = {
    "workload": make_workload(
        duration=6.0, faults=Faults.parse("503:5%; outage:2s..3s")
    )
}


def attempts(back: float | None = 0.2, **changes) -> Attempts:
    known = {
        "calls": 1000,
        "attempts": 1100,
        "carried_out": 990,
        "repeated": 10,
        "kinds": {"good": 1000, "503": 60, "outage": 40},
        "statuses": {"200": 950, "503": 10, "0": 40},
        "densest_share": 0.02,
        "over_time": [100.0] * 60,
        "recoveries": [
            Recovery(state="outage:2s..3s", end=3.0, rate_before=200.0, seconds=back)
        ],
    }
    return Attempts(**known | changes)


def a_faulty_trial(strategy="urllib3", number=1, wall=6.0, **changes):
    over_time = [
        Slice(at=wall * place / 60, requests=17, errors=1) for place in range(60)
    ]
    errors = {"status-5xx": 10, "reset": 40}
    known = {"attempts": attempts(), "errors": errors, "over_time": over_time}
    return a_trial(strategy, number, wall, **known | changes)


def parts_of(run, kind):
    section = faults(Report(run))
    return [
        item for part in section.parts if isinstance(part, kind) for item in part.items
    ]


def test_a_sentence_says_what_the_faults_did_to_an_arm():
    run = a_run(a_faulty_trial(), a_faulty_trial(number=2), workloads=WORKLOADS)
    sentence, *_ = parts_of(run, Lines)
    assert sentence == (
        "urllib3: 100 of 2,000 calls were lost (5.00 %), with 1.10 attempts per call;"
        " work was done again 20 times; back at 90 % of its rate 200 ms after"
        " outage:2s..3s."
    )


def test_an_arm_that_never_came_back_is_told():
    rounds = [
        a_faulty_trial(number=1, attempts=attempts(None)),
        a_faulty_trial(number=2, attempts=attempts(None)),
        a_faulty_trial(number=3, attempts=attempts(0.5)),
    ]
    sentence, *_ = parts_of(a_run(*rounds, workloads=WORKLOADS), Lines)
    assert "did not come back to 90 % of its rate after outage:2s..3s" in sentence


def test_tables_have_what_the_upstream_did_and_what_the_client_saw():
    upstream, client = parts_of(a_run(a_faulty_trial(), workloads=WORKLOADS), Tables)
    assert dict(zip(upstream.headings, upstream.rows[0], strict=True))["503"] == "60"
    assert dict(zip(client.headings, client.rows[0], strict=True))["none"] == "40"


def test_the_chart_shades_the_outage_and_has_three_rows_for_each_arm():
    trials = [a_faulty_trial(), a_faulty_trial("aiohttp")]
    run = a_run(*trials, workloads=WORKLOADS)
    [chart] = parts_of(run, Charts)
    assert isinstance(chart, RowChart)
    assert chart.bands == [(2.0, 3.0)]
    names = [row.name.partition(": ")[2] for row in chart.rows]
    assert names == ["successes", "failures", "attempts"] * 2
    assert "160/s" in chart.rows[0].text


def test_failures_that_were_asked_for_do_not_spoil_a_ranking():
    trials = []
    for number in range(1, 6):
        trials += [
            a_faulty_trial("urllib3", number, 6.0 + number / 100),
            a_faulty_trial("aiohttp", number, 12.0 + number / 100),
        ]
    run = a_run(*trials, workloads=WORKLOADS)
    [standings] = rank_arms(run).values()
    assert [standing.name for standing in standings] == ["urllib3", "aiohttp"]
    assert standings[1].ratio.value == pytest.approx(2, rel=0.01)
    assert "fix the errors" not in shown(run)


def test_attempts_and_duplicates_are_figures():
    trials = [a_faulty_trial()]
    assert BY_KEY["attempts"].over_rounds(trials) == pytest.approx(1.1)
    assert BY_KEY["duplicates"].over_rounds(trials) == pytest.approx(0.01)
    assert BY_KEY["densest"].over_rounds(trials) == pytest.approx(0.02)


def test_a_run_without_faults_has_no_section():
    assert not parts_of(a_run(a_trial()), (Lines, Tables, Charts))
