"""Arms with unlike numbers of requests in flight: the reports rank like with like, and show c."""

from __future__ import annotations

from clientlab.judging.claim_verdicts import judged
from clientlab.judging.comparison import compare
from clientlab.judging.thresholds import judge_changes, judge_run, parse_change, parse_threshold
from clientlab.judging.undecided import undecided_arms
from clientlab.reports import as_html, as_junit, as_markdown
from clientlab.reports.charts.row_charts import comparisons
from clientlab.reports.comparison import as_json, notices, summary, tables
from clientlab.reports.headline import environment_answers
from clientlab.reports.rows import groups_of
from clientlab.results.plan import Arm, Claim, EnvironmentSpec
from clients.documents import a_run, a_trial
from clients.reports.test_table import columns


def rounds(strategy: str, wall: float, c: int, make=a_trial, **changes) -> list:
    """Three rounds that wait for the server's delay."""
    return [
        make(strategy, number, wall * (1 + number / 1000), concurrency=c, verdict="latency-bound", **changes)
        for number in (1, 2, 3)
    ]


MIXED = [*rounds("wide", 1.0, 32), *rounds("wider", 2.0, 32), *rounds("one", 30.0, 1), *rounds("two", 60.0, 1)]


def test_the_table_keeps_arms_of_equal_concurrency_together():
    found = columns(a_run(*MIXED, *rounds("three", 10.0, 4)))
    assert found["strategy"] == ["wide", "wider", "three", "one", "two"]
    assert found["c"] == ["32", "32", "4", "1", "1"]
    assert found["x fastest of c (95 %)"] == ["1", "2.00 (2.00 to 2.00)", "–", "1", "2.00 (2.00 to 2.00)"]
    assert "x fastest (95 %)" in columns(a_run(*rounds("wide", 1.0, 32), *rounds("wider", 2.0, 32)))


SHORT = [*rounds("httpx", 5.0, 300, requests=75), *rounds("requests", 1.0, 300), *rounds("urllib3", 1.1, 300)]


def test_an_arm_that_never_reached_its_concurrency_is_named_with_the_reason_and_not_ranked():
    for wall in (5.0, 0.1):
        run = a_run(*rounds("httpx", wall, 300, requests=75), *SHORT[3:])
        for text in (as_html.render(run), as_markdown.render(run)):
            assert "httpx is not ranked: it sent only 75 requests per trial" in text
            assert "times as fast as httpx" not in text
        found = columns(run)
        assert found["strategy"] == ["requests", "urllib3", "httpx"]
        assert found["x fastest (95 %)"][::2] == ["1", "not ranked"]
        bars = [bar.name for chart in comparisons(run, groups_of(run)) for bar in chart.rows]
        assert bars == ["requests", "urllib3"]
        assert undecided_arms(run) == set()
        assert "not ranked: it sent only 75 requests" in as_junit.render(run, [])
        claim = Claim(name="it", text="It is so", kind="less", a="requests", b="httpx")
        (claim,) = judged(a_run(*run.trials, claims=[claim]))
        assert (claim.verdict, claim.ratio) == ("inconclusive", None)
        assert "75 requests" in claim.measured


def test_runs_and_environments_in_which_it_fell_short_are_not_compared():
    """A threshold of it fails where the later side fell short: it may have become that slow."""
    whole, short = a_run(*rounds("httpx", 1.0, 300)), a_run(*SHORT[:3])
    found = compare(whole, [short])
    assert found.others[0].changes["httpx"]["throughput"].verdict == "undecided"
    assert any("httpx is not compared" in line for notice in notices(found) for line in notice.items)
    assert tables(found) == []
    assert "p99" not in as_json(found, [])
    assert "httpx: p99" not in as_junit.render_comparison(found, [])
    assert summary(found).startswith("0 figures compared")
    assert judge_changes(found, [parse_change("throughput -5%")], strict=False)[0].outcome == "failed"
    sides = [
        rounds("httpx", wall, 300, requests=requests, arm=f"httpx in {name}", environment=name)
        for name, wall, requests in (("old", 1.0, 1000), ("new", 5.0, 75))
    ]
    arms = [Arm(name=of[0].arm, label=of[0].arm, strategy="httpx", upstream="aiohttp", route="direct",
                workload="workload", environment=of[0].environment) for of in sides]  # fmt: skip
    specs = {name: EnvironmentSpec(folder=f"/{name}") for name in ("old", "new")}
    run = a_run(*sides[0], *sides[1], arms=arms, environments=specs)
    assert "are not compared: httpx in new: it sent only 75" in environment_answers(run)[0].sentence
    assert judge_run(run, [parse_threshold("throughput -5%")])[0].outcome == "failed"
