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
from clientlab.reports.answers import version_answers
from clientlab.reports.change_contents import as_json, notices, summary, tables
from clientlab.reports.charts import comparisons
from clientlab.reports.contents import FASTEST, LEAST_P99
from clientlab.reports.rows import groups_of
from clientlab.results.plan import Claim
from clientlab.results.trial import Trial
from clientlab.workload.values import Stages
from clientlab.workload.workload import make_workload
from clients.documents import a_run, an_open_trial, rounds
from clients.reports.views import answers, columns, shown

OPEN = make_workload(rate=200, duration=5.0)


def open_rounds(strategy: str, p99: float, **changes) -> list[Trial]:
    return [
        an_open_trial(strategy, number, p99 * (1 + number / 1000), **changes)
        for number in (1, 2, 3)
    ]


def run_of(*trials):
    return a_run(*trials, workloads={"workload": OPEN})


QUICK_AND_SLOW = [*open_rounds("quick", 0.010), *open_rounds("slow", 0.030)]


def with_labels(run):
    """The run, whose arms are shown by their names."""
    arms = [arm.updated(label=arm.name) for arm in run.experiment.arms]
    return run.updated(experiment=run.experiment.updated(arms=arms))


def test_arms_are_ranked_by_p99_from_the_planned_start_and_not_by_wall_time():
    run = run_of(
        *open_rounds("quick", 0.010, wall=5.1), *open_rounds("slow", 0.030, wall=5.0)
    )
    ((first, second),) = rank_arms(run).values()
    assert first.name == "quick"
    assert second.name == "slow"
    assert second.ratio.value == pytest.approx(3.0, rel=1e-3)
    (answer,) = answers(run)
    assert answer.startswith(
        "quick had a p99 of 10.0 ms from the planned start; that of slow is 3.00"
    )
    found = columns(run)
    least, ratio = found["x least p99 (95 %)"]
    assert least == "1"
    assert ratio.startswith("3.00")
    for head in found:
        assert not head.startswith("x fastest")
    words = " ".join(shown(run).split())
    assert LEAST_P99 in words
    assert FASTEST not in words


def test_an_arm_that_dropped_so_much_that_p99_is_a_bound_is_last_and_has_no_ratio():
    """Its p99 is "at least": it may be any number of times as long."""
    bounded = open_rounds(
        "shedding",
        0.001,
        dropped=100,
        errors={"dropped": 100},
        at_least=["p99", "p999", "max", "mean"],
    )
    run = run_of(*bounded, *QUICK_AND_SLOW)
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
    run = run_of(
        *open_rounds("a", 0.00264, **failing), *open_rounds("b", 0.009, **failing)
    )
    (answer,) = answers(run)
    assert answer.startswith("a (≥ 2.65 ms) and b (≥ 9.02 ms): so many requests failed")
    assert "had a p99" not in answer
    assert columns(run)["x least p99 (95 %)"] == ["–", "–"]
    (group,) = groups_of(run)
    for row in group.rows:
        assert not row.first


def test_schedules_of_equal_rate_are_not_compared_if_their_stages_differ():
    rising = "0s:100/s,2.5s:300/s"
    falling = "0s:300/s,2.5s:100/s"
    workloads = {
        "rising": make_workload(stages=Stages.parse(rising), duration=5.0),
        "falling": make_workload(stages=Stages.parse(falling), duration=5.0),
    }
    trials = [
        *open_rounds("urllib3[0]", 0.01, workload="rising"),
        *open_rounds("urllib3[1]", 0.01, workload="falling"),
    ]
    run = with_labels(a_run(*trials, workloads=workloads))
    arms = [arm.updated(group="w") for arm in run.experiment.arms]
    run = run.updated(experiment=run.experiment.updated(arms=arms))
    assert columns(run)["x least p99 of c (95 %)"] == ["–", "–"]
    (answer,) = answers(run)
    assert answer.startswith(f"With {rising}, urllib3[0] had a p99")


@pytest.mark.parametrize(
    ("achieved", "dropped", "bound"),
    [
        (199.0, 0, "on-schedule"),
        (197.0, 0, "behind-schedule"),
        (200.0, 1, "behind-schedule"),
    ],
)
def test_a_strategy_that_sends_too_little_or_drops_is_behind_schedule(
    achieved, dropped, bound
):
    trial = an_open_trial(achieved_per_second=achieved, dropped=dropped)
    assert trial.bound == bound


def test_a_caution_says_what_an_overloaded_strategy_sent():
    run = run_of(*open_rounds("slow", 2.0, achieved_per_second=150.0))
    texts = {caution.kind: caution.text for caution in cautions_of(run)}
    assert "slow: sent 150 of 200 requests/s" in texts["overloaded"]


def test_a_claim_about_what_the_schedule_decides_is_refused():
    arms = run_of(*QUICK_AND_SLOW).experiment.arms

    def plan_claim(figure: str):
        table = ClaimTable(
            text="quick is faster", kind="less", figure=figure, a="quick", b="slow"
        )
        return planned_claims({"it": table}, arms, {"workload": OPEN})

    with pytest.raises(FieldError, match=r"arm .quick.*p99"):
        plan_claim("wall_seconds")
    assert plan_claim("p99")


def closed(strategy: str, wall: float, **changes) -> list[Trial]:
    """Three rounds that wait for the server's delay."""
    walls = [wall * 1.001, wall * 1.002, wall * 1.003]
    changes |= {"concurrency": 300, "bound": "latency-bound"}
    return rounds(strategy, *walls, **changes)


@pytest.mark.parametrize("wall", [5.0, 0.1])
def test_an_arm_that_never_reached_its_concurrency_is_not_ranked(wall):
    run = a_run(
        *closed("httpx", wall, requests=75),
        *closed("requests", 1.0),
        *closed("urllib3", 1.1),
    )
    for text in (as_html.render(run), as_markdown.render(run)):
        assert "httpx is not ranked: it sent only 75 requests per trial" in text
        assert "times as fast as httpx" not in text
    found = columns(run)
    assert found["strategy"] == ["requests", "urllib3", "httpx"]
    assert found["x fastest (95 %)"][::2] == ["1", "not ranked"]
    (chart,) = comparisons(run, groups_of(run))
    assert [bar.name for bar in chart.rows] == ["requests", "urllib3"]
    assert undecided_arms(run) == set()
    assert "not ranked: it sent only 75 requests" in as_junit.render(run, [])
    claim = Claim(name="it", text="It is so", kind="less", a="requests", b="httpx")
    (claim,) = with_judgement(a_run(*run.trials, claims=[claim])).claims
    assert claim.verdict == "inconclusive"
    assert claim.ratio is None
    assert "75 requests" in claim.measured


def test_runs_in_which_it_fell_short_are_not_compared():
    """A threshold of it fails where the later side fell short: it may have become that
    slow.
    """
    whole = a_run(*closed("httpx", 1.0))
    short = a_run(*closed("httpx", 5.0, requests=75))
    found = compare(whole, [short])
    (other,) = found.others
    assert other.changes["httpx"]["throughput"].verdict == "undecided"
    noticed = [line for notice in notices(found) for line in notice.items]
    assert any("httpx is not compared" in line for line in noticed)
    assert tables(found) == []
    assert "p99" not in as_json(found, [])
    assert "httpx: p99" not in as_junit.render_comparison(found, [])
    assert summary(found).startswith("0 figures compared")
    (judged,) = judge_changes(found, [parse_change("throughput -5%")], strict=False)
    assert judged.outcome == "failed"


def test_environments_in_which_it_fell_short_are_not_compared():
    old = {"arm": "httpx in old", "environment": "old"}
    new = {"arm": "httpx in new", "environment": "new", "requests": 75}
    run = a_run(*closed("httpx", 1.0, **old), *closed("httpx", 5.0, **new))
    ((answer, *_),) = version_answers(run)
    assert "are not compared: httpx in new: it sent only 75" in answer
    (judged,) = judge_run(run, [parse_threshold("throughput -5%")])
    assert judged.outcome == "failed"


def test_arms_that_are_alone_with_their_concurrency_have_no_ratios():
    """Not even to themselves: "1.00 (1.00 to 1.00)" looks like a comparison."""
    run = a_run(
        *rounds("a", arm="a[c=1]", concurrency=1),
        *rounds("a", arm="a[c=8]", concurrency=8),
    )
    found = columns(with_labels(run))
    assert found["x p99 (95 %)"] == ["–", "–"]
    assert found["x CPU/req (95 %)"] == ["–", "–"]
