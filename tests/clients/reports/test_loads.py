"""Arms with open loads, and with unlike concurrency: the reports rank like with like,
and name what they ranked by.
"""

from __future__ import annotations

import pytest

from clientlab.errors import FieldError
from clientlab.experiments.experiment import ClaimTable
from clientlab.experiments.planning import planned_claims
from clientlab.judging.cautions import cautions_of
from clientlab.judging.comparison import compare
from clientlab.judging.judgement import undecided_arms, with_judgement
from clientlab.judging.ranking import rank_arms
from clientlab.judging.thresholds import (
    judge_changes,
    judge_run,
    parse_change,
    parse_threshold,
)
from clientlab.reports import as_html, as_junit, as_markdown
from clientlab.reports.change_contents import as_json, notices, summary, tables
from clientlab.reports.charts import comparisons
from clientlab.reports.contents import FASTEST, LEAST_P99
from clientlab.reports.headline import version_answers
from clientlab.reports.rows import groups_of
from clientlab.results.plan import Arm, Claim, EnvironmentSpec
from clientlab.workload.values import Stages
from clientlab.workload.workload import make_workload
from clients.documents import a_run, a_trial, an_open_trial, with_changes
from clients.reports.views import answers, columns, shown

OPEN = make_workload(rate=200, duration=5.0)


def rounds(strategy: str, p99: float, **changes) -> list:
    return [
        an_open_trial(strategy, number, p99 * (1 + number / 1000), **changes)
        for number in (1, 2, 3)
    ]


def run_of(*trials):
    return a_run(*trials, workloads={"workload": OPEN})


def test_arms_are_ranked_by_p99_from_the_planned_start_and_not_by_wall_time():
    run = run_of(*rounds("quick", 0.010, wall=5.1), *rounds("slow", 0.030, wall=5.0))
    ((_, rows),) = rank_arms(run).items()
    assert [(row.name, round(row.ratio.value, 3)) for row in rows] == [
        ("quick", 1.0),
        ("slow", 3.0),
    ]
    (answer,) = answers(run)
    assert answer.startswith(
        "quick had a p99 of 10.0 ms from the planned start; that of slow is 3.00"
    )
    found = columns(run)
    assert found["x least p99 (95 %)"][0] == "1"
    assert found["x least p99 (95 %)"][1].startswith("3.00")
    for head in found:
        assert not head.startswith("x fastest")
    words = " ".join(shown(run).split())
    assert LEAST_P99 in words
    assert FASTEST not in words


def test_an_arm_that_dropped_so_much_that_p99_is_a_bound_is_last_and_has_no_ratio():
    """Its p99 is "at least": it may be any number of times as long."""
    bounded = rounds(
        "shedding",
        0.001,
        dropped=100,
        errors={"dropped": 100},
        at_least=["p99", "p999", "max", "mean"],
    )
    run = run_of(*bounded, *rounds("quick", 0.010), *rounds("slow", 0.030))
    found = columns(run)
    assert found["strategy"] == ["quick", "slow", "shedding"]
    assert found["x least p99 (95 %)"][2] == "–"
    assert found["p99"][2] == "≥ 1.00 ms"
    assert found["dropped"] == ["0", "0", "10.0 %"]
    assert found["bottleneck"] == [
        "none, on schedule",
        "none, on schedule",
        "behind schedule",
    ]
    (answer,) = answers(run)
    assert answer.endswith(
        "were dropped that p99 is only a lower bound: shedding (≥ 1.00 ms)."
    )


def test_a_lower_bound_is_no_answer():
    """If more than 1 % of the requests of each arm fail, nobody knows any p99."""
    failing = {
        "errors": {"status-5xx": 375},
        "at_least": ["p99", "p999", "max", "mean"],
    }
    run = run_of(*rounds("a", 0.00264, **failing), *rounds("b", 0.009, **failing))
    (answer,) = answers(run)
    assert answer.startswith("a (≥ 2.65 ms) and b (≥ 9.02 ms): so many requests failed")
    assert "had a p99" not in answer
    assert columns(run)["x least p99 (95 %)"] == ["–", "–"]
    assert not any(row.first for group in groups_of(run) for row in group.rows)


def test_schedules_of_equal_rate_are_not_compared_if_their_stages_differ():
    stages = ("0s:100/s,2.5s:300/s", "0s:300/s,2.5s:100/s")
    workloads = {
        f"w{place}": make_workload(stages=Stages.parse(text), duration=5.0)
        for place, text in enumerate(stages)
    }
    trials = [
        one
        for place, name in enumerate(workloads)
        for one in rounds(f"urllib3[{place}]", 0.01, workload=name)
    ]
    run = a_run(*trials, workloads=workloads)
    arms = [arm.updated(group="w", label=arm.name) for arm in run.experiment.arms]
    run = run.updated(experiment=run.experiment.updated(arms=arms))
    assert columns(run)["x least p99 of c (95 %)"] == ["–", "–"]
    (answer,) = answers(run)
    assert answer.startswith(f"With {stages[0]}, urllib3[0] had a p99")


def test_a_strategy_that_sends_too_little_or_drops_is_behind_schedule():
    on_schedule, late, dropping = (
        an_open_trial(achieved_per_second=achieved, dropped=dropped).bound
        for achieved, dropped in ((199.0, 0), (197.0, 0), (200.0, 1))
    )
    assert on_schedule == "on-schedule"
    assert late == "behind-schedule"
    assert dropping == "behind-schedule"
    run = run_of(*rounds("slow", 2.0, achieved_per_second=150.0))
    (caution,) = [one for one in cautions_of(run) if one.kind == "overloaded"]
    assert "slow: sent 150 of 200 requests/s" in caution.text


def test_a_claim_about_what_the_schedule_decides_is_refused():
    run = run_of(*rounds("quick", 0.010), *rounds("slow", 0.030))
    table = ClaimTable(
        text="quick is faster", kind="less", figure="wall_seconds", a="quick", b="slow"
    )
    with pytest.raises(FieldError, match=r"arm .quick.*p99"):
        planned_claims({"it": table}, run.experiment.arms, {"workload": OPEN})
    good = ClaimTable(
        text="quick is faster", kind="less", figure="p99", a="quick", b="slow"
    )
    assert planned_claims({"it": good}, run.experiment.arms, {"workload": OPEN})


def closed(strategy: str, wall: float, c: int, **changes) -> list:
    """Three rounds that wait for the server's delay."""
    changes |= {"concurrency": c, "bound": "latency-bound"}
    return [
        a_trial(strategy, number, wall * (1 + number / 1000), **changes)
        for number in (1, 2, 3)
    ]


SHORT = [
    *closed("httpx", 5.0, 300, requests=75),
    *closed("requests", 1.0, 300),
    *closed("urllib3", 1.1, 300),
]


def test_an_arm_that_never_reached_its_concurrency_is_not_ranked():
    for wall in (5.0, 0.1):
        run = a_run(*closed("httpx", wall, 300, requests=75), *SHORT[3:])
        for text in (as_html.render(run), as_markdown.render(run)):
            assert "httpx is not ranked: it sent only 75 requests per trial" in text
            assert "times as fast as httpx" not in text
        found = columns(run)
        assert found["strategy"] == ["requests", "urllib3", "httpx"]
        assert found["x fastest (95 %)"][::2] == ["1", "not ranked"]
        bars = [
            bar.name for chart in comparisons(run, groups_of(run)) for bar in chart.rows
        ]
        assert bars == ["requests", "urllib3"]
        assert undecided_arms(run) == set()
        assert "not ranked: it sent only 75 requests" in as_junit.render(run, [])
        claim = Claim(name="it", text="It is so", kind="less", a="requests", b="httpx")
        (claim,) = with_judgement(a_run(*run.trials, claims=[claim])).claims
        assert claim.verdict == "inconclusive"
        assert claim.ratio is None
        assert "75 requests" in claim.measured


def test_runs_and_environments_in_which_it_fell_short_are_not_compared():
    """A threshold of it fails where the later side fell short: it may have become that
    slow.
    """
    whole = a_run(*closed("httpx", 1.0, 300))
    short = a_run(*SHORT[:3])
    found = compare(whole, [short])
    assert found.others[0].changes["httpx"]["throughput"].verdict == "undecided"
    assert any(
        "httpx is not compared" in line
        for notice in notices(found)
        for line in notice.items
    )
    assert tables(found) == []
    assert "p99" not in as_json(found, [])
    assert "httpx: p99" not in as_junit.render_comparison(found, [])
    assert summary(found).startswith("0 figures compared")
    assert (
        judge_changes(found, [parse_change("throughput -5%")], strict=False)[0].outcome
        == "failed"
    )
    trials = []
    arms = []
    for where, wall, requests in (("old", 1.0, 1000), ("new", 5.0, 75)):
        name = f"httpx in {where}"
        trials += closed(
            "httpx", wall, 300, requests=requests, arm=name, environment=where
        )
        arms.append(
            Arm(
                name=name,
                label=name,
                strategy="httpx",
                upstream="aiohttp",
                route="direct",
                workload="workload",
                environment=where,
            )
        )
    run = a_run(
        *trials,
        arms=arms,
        environments={one.environment: EnvironmentSpec(folder="/x") for one in arms},
    )
    assert (
        "are not compared: httpx in new: it sent only 75" in version_answers(run)[0][0]
    )
    assert judge_run(run, [parse_threshold("throughput -5%")])[0].outcome == "failed"


def test_arms_that_are_alone_with_their_concurrency_have_no_ratios():
    """Not even to themselves: "1.00 (1.00 to 1.00)" looks like a comparison."""
    trials = [
        a_trial("a", number, concurrency=place)
        for place in (1, 8)
        for number in (1, 2, 3)
    ]
    arms = [f"a[c={trial.planned.concurrency}]" for trial in trials]
    run = a_run(
        *(with_changes(trial, arm=arm) for trial, arm in zip(trials, arms, strict=True))
    )
    named = [arm.updated(label=arm.name) for arm in run.experiment.arms]
    run = run.updated(experiment=run.experiment.updated(arms=named))
    found = columns(run)
    assert found["x p99 (95 %)"] == found["x CPU/req (95 %)"] == ["–", "–"]
