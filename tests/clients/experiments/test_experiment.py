"""Experiments: bundled ones, files of one's own, and what can't be."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

from clientlab.errors import LabError
from clientlab.experiments.checks import check_plan
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.file import bundled, read_experiment, read_plan
from clientlab.experiments.overrides import Overrides, overridden
from clientlab.experiments.planning import make_plan
from clientlab.results.plan import Plan
from clientlab.strategies import availability
from clientlab.upstreams import find as find_upstream
from clientlab.workload.link import Link
from clientlab.workload.workload import Workload
from clients.plans import checked_plan

SMALLEST = 'question = "Which?"\nstrategies = ["urllib3"]\n[workloads.w]\n'


def experiment(workloads: dict[str, Workload] | None = None, **changes) -> Experiment:
    tables = {name: WorkloadTable(first=workload) for name, workload in (workloads or {"w": Workload()}).items()}
    return Experiment(**{"name": "mine", "question": "?", "strategies": ["urllib3"], "workloads": tables} | changes)


@pytest.mark.parametrize("name", bundled())
@pytest.mark.parametrize("quick", [False, True])
def test_every_bundled_experiment_can_be_run(name, quick):
    plan = checked_plan(bundled()[name], quick=quick)
    assert all(find_upstream(arm.upstream) for arm in plan.arms)
    assert plan.name == name
    assert plan.question.endswith("?")


def test_a_file_needs_little_and_the_rest_has_defaults(mine):
    found = read_experiment(mine(SMALLEST)).experiment
    assert found == experiment(question="Which?")
    assert (found.upstreams, found.routes, found.rounds, found.seed) == (["aiohttp"], ["direct"], 3, None)
    assert found.workloads["w"].first.requests == 1000


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"strategies": ["urlib3"]}, "'urlib3'"),
        ({"strategies": ["aiohttp@threads"]}, "asyncio and threads"),
        ({"strategies": ["ab"], "workloads": {"w": Workload(rate=9)}}, "rate: .*'ab'"),
        ({"routes": ["proxy", "proxy"]}, "'proxy' is given twice"),
        ({"routes": ["proxy-tls", "proxy"], "strategies": ["urllib3", "pycurl-h2@threads"]}, "HTTP/2"),
    ],
)
def test_an_experiment_that_cannot_be_done_is_refused_before_anything_starts(changes, says, monkeypatch):
    monkeypatch.setattr(availability, "which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(LabError, match=says):
        check_plan(make_plan(experiment(**changes)), experiment(**changes))


CLAIMED = """
question = "Which?"
strategies = ["urllib3", "pycurl", "requests"]
[workloads.w]
{}
[arms.more]
strategy = "requests-session"
workload = "other"
[workloads.other]
requests = 7
[claims.x]
text = "It is so"
{}
"""


@pytest.mark.parametrize(
    ("workload", "claim", "key"),
    [
        ("duration = '1s'", 'kind = "less"\na = "urllib3 (w)"\nb = "pycurl (w)"', "claim 'x'"),
        ("", 'kind = "less"\nfigure = "elapsed"\na = "urllib3 (w)"\nb = "pycurl (w)"', "claims.x.figure"),
        ("", 'kind = "less"\nfigure = "p98"\na = "urllib3 (w)"\nb = "pycurl (w)"', "claims.x.figure"),
        ("", 'kind = "less"\na = "requests (w)"\nb = "more"', "claims.x.figure"),
        ("requests = [5, 6, 8]", 'kind = "optimum"\nsweep = "urllib3 (w)"', "claims.x.figure"),
        ("", 'kind = "narrower"\na = "more"\nb = "urllib3 (other)"\nc = "more"\nd = "urllib3 (other)"', "claims.x.d"),
    ],
)  # fmt: skip
def test_a_claim_that_no_run_can_settle_is_refused(workload, claim, key, mine):
    with pytest.raises(LabError, match=key) as caught:
        read_plan(mine(CLAIMED.format(workload, claim)))
    assert re.match(r".*mine.toml: claims", str(caught.value))


def test_what_is_not_installed_is_replaced_where_the_experiment_says_by_what(monkeypatch):
    instead = {"ab": "pycurl@multi", "ab?keepalive=false": "pycurl@multi?forbid_reuse=true"}
    monkeypatch.setattr(availability, "which", lambda _: "/usr/bin/ab")
    assert checked_plan(bundled()["frameworks"]).replaced == {}
    monkeypatch.setattr(availability, "which", lambda _: None)
    plan = checked_plan(bundled()["frameworks"])
    assert {arm.strategy for arm in plan.arms if arm.group == "planets"} == set(instead.values())
    assert plan.replaced == instead


def test_a_baseline_and_a_sweep_that_the_machine_cannot_run_leave_a_valid_plan(monkeypatch):
    full = read_plan(bundled()["keepalive"])
    monkeypatch.setattr(availability, "find_spec", lambda name: None if name == "requests" else find_spec(name))
    plan = checked_plan(bundled()["keepalive"])
    assert [arm.name for arm in plan.arms] == ["httpx-client", "httpx-client-behind-link"]
    assert (full.baseline, plan.baseline, plan.claims) == ("per-request", None, full.claims)
    monkeypatch.setattr(availability, "find_spec", lambda name: None if name == "aiohttp" else find_spec(name))
    plan = checked_plan(bundled()["semaphore"])
    (sweep,) = (claim.arms for claim in plan.claims if claim.kind == "optimum")
    assert plan.unavailable_arms.keys() >= set(sweep)
    assert plan.workloads.keys() == {arm.workload for arm in plan.arms}
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


@pytest.mark.parametrize(
    ("given", "arms"),
    [
        ({"strategies": ("urllib3",)}, {"urllib3 (direct)", "urllib3 (proxy)"}),
        ({"strategies": ("urllib3",), "routes": ("proxy",)}, {"urllib3"}),
        ({"routes": ("proxy",)}, {"requests", "requests-session", "pycurl", "aiohttp@workers"}),
    ],
)
def test_what_is_given_takes_the_place_of_the_arms_of_the_demo(given, arms):
    """No claim is about them, so nothing is lost."""
    demo = read_experiment(bundled()["demo"]).experiment
    assert {arm.name for arm in make_plan(overridden(demo, Overrides(**given))).arms} == arms


def test_options_win_over_the_experiment_and_the_plan_says_what_was_changed(mine):
    text = 'question = "?"\nstrategies = ["urllib3"]\nrounds = 5\n[workloads.a]\nduration = "60s"\n[workloads.b]\n'
    plan = checked_plan(mine(text + "requests = 7\n"), strategies=("http.client",), rounds=1, workload={"requests": 3})
    assert (plan.rounds, {arm.strategy for arm in plan.arms}) == (1, {"http.client"})
    assert {name: (w.requests, w.duration) for name, w in plan.workloads.items()} == {"a": (3, None), "b": (3, None)}
    assert "requests: 7 → 3" in plan.changed


def test_control_arms_behind_their_own_link_are_left_out_of_a_run_behind_another():
    full, plan = (checked_plan(bundled()["keepalive"], **given) for given in ({}, {"rtt": (0.001,)}))
    assert {arm.name: arm.link for arm in plan.arms} == dict.fromkeys(
        ["per-request", "session", "httpx-client"], Link(0.001)
    )
    assert 0 < len(plan.claims) < len(full.claims)
    assert any("httpx-client-behind-link" in line for line in plan.changed)


@pytest.mark.parametrize(
    ("given", "budget"),
    [({}, 60.0), ({"rounds": 4}, None), ({"precision": 0.05}, None), ({"rounds": 4, "budget": 90.0}, 90.0)],
)
def test_a_number_of_rounds_takes_the_place_of_the_budget(given, budget):
    """So does a precision: whoever names one of them wants no other end."""
    demo = read_experiment(bundled()["demo"]).experiment
    assert overridden(demo, Overrides(**given)).budget == budget


QUICK = """
question = "Which?"
[workloads.w]
requests = 100
delay = "10ms"
[arms.near]
strategy = "urllib3@threads"
concurrency = 8
[arms.near-session]
strategy = "requests-session@threads"
concurrency = 8
[arms.far]
strategy = "urllib3@threads"
rtt = "121ms"
[arms.wide]
strategy = "aiohttp@workers"
concurrency = [16, 4000]
[claims.eight]
text = "With 8 in flight, urllib3 takes less time"
kind = "less"
a = "near"
b = "near-session"
[claims.round-trip]
text = "At 121 ms, a request takes longer"
kind = "less"
a = "near"
b = "far"
[claims.many]
text = "4,000 in flight take longer than 16"
kind = "less"
a = "wide[first]"
b = "wide[last]"
[quick]
rounds = 1
"""


@pytest.mark.parametrize(
    ("changes", "judged"),
    [
        ('[quick.workloads.w]\nrequests = 10\ndelay = "1ms"', ["eight", "round-trip", "many"]),
        ('[quick.arms.far]\nrtt = "60ms"', ["eight", "many"]),
        ("[quick.arms.near]\nconcurrency = 4", ["many"]),
        ("[quick.arms.wide]\nconcurrency = [16, 900]", ["eight", "round-trip"]),
    ],
)
def test_a_quick_form_judges_no_claim_about_another_link_or_concurrency(changes, judged, mine):
    file = read_experiment(mine(QUICK + changes), quick=True)
    left_out = {"eight", "round-trip", "many"} - set(judged)
    assert [claim.name for claim in file.plan().claims] == judged
    assert {line.partition(":")[0] for line in file.shortened if "claims." in line} == {f"claims.{o}" for o in left_out}


def test_the_quick_forms_of_the_articles_judge_every_claim():
    articles = ("six-strategies", "sessions", "semaphore", "keepalive", "frameworks")
    plans = [(read_plan(bundled()[name]), read_plan(bundled()[name], quick=True)) for name in articles]
    assert sum(len(quick.claims) for _, quick in plans) == sum(len(full.claims) for full, _ in plans) == 83
