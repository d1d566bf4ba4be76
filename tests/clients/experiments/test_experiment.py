"""Experiments: bundled ones, files of one's own, and what can't be."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

from clientlab.errors import LabError
from clientlab.experiments.checks import check_plan, replacements
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.file import bundled, read_experiment, read_plan
from clientlab.experiments.overrides import Overrides, overridden
from clientlab.experiments.planning import make_plan
from clientlab.results.plan import Plan
from clientlab.running.due import most_in_flight
from clientlab.strategies import availability
from clientlab.upstreams import find as find_upstream
from clientlab.workload.load import requests_in
from clientlab.workload.workload import Workload

SMALLEST = 'question = "Which?"\nstrategies = ["urllib3"]\n[workloads.w]\n'


def written(tmp_path, text: str, name: str = "mine.toml"):
    """A file of an experiment."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def experiment(workloads: dict[str, Workload] | None = None, **changes) -> Experiment:
    """A small experiment."""
    tables = {name: WorkloadTable(first=workload) for name, workload in (workloads or {"w": Workload()}).items()}
    return Experiment(**{"name": "mine", "question": "?", "strategies": ["urllib3"], "workloads": tables} | changes)


def planned(**changes) -> Plan:
    """The plan of a small experiment."""
    return make_plan(experiment(**changes))


@pytest.mark.parametrize("name", bundled())
@pytest.mark.parametrize("quick", [False, True])
def test_every_bundled_experiment_can_be_run(name, quick):
    """In full and in its quick form: it is read, its strategies and claims are known, its workloads can be done."""
    file = read_experiment(bundled()[name], quick=quick)
    plan = file.checked_plan(replaced=replacements(file.experiment))
    assert all(find_upstream(arm.upstream) for arm in plan.arms)
    assert plan.name == name
    assert plan.question.endswith("?")


def test_a_file_needs_little_and_the_rest_has_defaults(tmp_path):
    """Its name is the file's; three rounds against the aiohttp upstream, directly."""
    found = read_experiment(written(tmp_path, SMALLEST)).experiment
    assert found == experiment(question="Which?")
    assert (found.upstreams, found.routes, found.rounds, found.seed) == (["aiohttp"], ["direct"], 3, None)
    assert found.workloads["w"].first.requests == 1000


def test_a_strategy_of_a_file_has_its_settings_behind_its_name(tmp_path):
    """As on the command line; the same strategy may stand there with others."""
    lines = 'strategies = ["sync_multiprocess?processes=100", "sync_multiprocess", "aiohttp@gather?pool=none"]'
    file = read_experiment(written(tmp_path, SMALLEST.replace('strategies = ["urllib3"]', lines)))
    plan = file.checked_plan()
    assert [arm.strategy for arm in plan.arms] == file.experiment.strategies
    assert most_in_flight(plan) == 1000
    wrong = read_experiment(written(tmp_path, SMALLEST.replace('"urllib3"', '"urllib3?limit=3"')))
    with pytest.raises(LabError, match="has no setting 'limit'; it has block, pool, library_defaults"):
        wrong.checked_plan()


def test_arms_are_every_combination_in_the_order_written():
    """Arms are ordered by workload, upstream, route and strategy, in the order of the file."""
    workloads = {"a": Workload(), "b": Workload(requests=7)}
    arms = planned(
        strategies=["pycurl", "urllib3"],
        upstreams=["flask", "aiohttp"],
        routes=["proxy", "direct"],
        workloads=workloads,
    ).arms
    words = [(arm.workload, arm.upstream, arm.route, arm.strategy) for arm in arms]
    assert len({arm.name for arm in arms}) == len(arms)
    assert len(set(words)) == 16
    assert words[:3] == [
        ("a", "flask", "proxy", "pycurl"), ("a", "flask", "proxy", "urllib3"), ("a", "flask", "direct", "pycurl"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"strategies": ["urlib3"]}, "'urlib3'"),
        ({"strategies": ["aiohttp@threads"]}, "asyncio and threads"),
        ({"strategies": ["urllib3", "pycurl", "urllib3"]}, "'urllib3' is given twice"),
        ({"upstreams": ["flask", "flask"]}, "'flask' is given twice"),
        ({"routes": ["proxy", "proxy"]}, "'proxy' is given twice"),
        ({"routes": ["proxy-tls", "proxy"], "strategies": ["urllib3", "pycurl-h2@threads"]}, "HTTP/2"),
        ({"workloads": {"w": Workload(), "x": Workload(concurrency=0)}}, "^workloads.x.concurrency: 0: "),
    ],
)
def test_an_experiment_that_cannot_be_done_is_refused_before_anything_starts(changes, says):
    """With what is wrong with it."""
    with pytest.raises(LabError, match=says):
        check_plan(planned(**changes), experiment(**changes))


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
        ("duration = '1s'", 'kind = "less"\nfigure = "cpu_total"\na = "urllib3 (w)"\nb = "pycurl (w)"', "x.figure"),
        ("", 'kind = "less"\nfigure = "elapsed"\na = "urllib3 (w)"\nb = "pycurl (w)"', "claims.x.figure"),
        ("", 'kind = "less"\nfigure = "overhead"\na = "urllib3 (w)"\nb = "pycurl (w)"', "claims.x.figure"),
        ("", 'kind = "less"\nfigure = "p98"\na = "urllib3 (w)"\nb = "pycurl (w)"', "claims.x.figure"),
        ("", 'kind = "less"\na = "requests (w)"\nb = "more"', "claims.x.figure"),
        ("requests = [5, 6, 8]", 'kind = "optimum"\nsweep = "urllib3 (w)"', "claims.x.figure"),
        ("", 'kind = "ratio"\nband = [0.9, 1.1]\na = "more"\nb = "more"', "claims.x.b"),
        ("", 'kind = "narrower"\na = "more"\nb = "urllib3 (other)"\nc = "more"\nd = "urllib3 (other)"', "claims.x.d"),
    ],
)  # fmt: skip
def test_a_claim_that_no_run_can_settle_is_refused(workload, claim, key, tmp_path):
    """With the line and key of what is wrong with it."""
    with pytest.raises(LabError, match=key) as caught:
        read_plan(written(tmp_path, CLAIMED.format(workload, claim)))
    assert re.match(r".*mine.toml: line \d+: ", str(caught.value))


@pytest.mark.parametrize(
    ("workload", "claim"),
    [
        ("duration = '1s'", 'kind = "less"\nfigure = "requests_per_second"\na = "urllib3 (w)"\nb = "pycurl (w)"'),
        ("", 'kind = "less"\nfigure = "p50"\na = "requests (w)"\nb = "more"'),
        ("", 'kind = "narrower"\na = "more"\nb = "urllib3 (other)"\nc = "pycurl (w)"\nd = "urllib3 (w)"'),
    ],
)
def test_a_claim_that_a_run_can_settle_is_taken(workload, claim, tmp_path):
    """Rates of durations, a quantile of unlike numbers of requests, a pair beside another of as many each."""
    plan = read_plan(written(tmp_path, CLAIMED.format(workload, claim)))
    assert [claim.name for claim in plan.claims] == ["x"]


def test_what_is_not_installed_is_replaced_where_the_experiment_says_by_what(monkeypatch):
    """The run names a strategy that is not installed and the strategy that replaces it."""
    file = read_experiment(bundled()["frameworks"])
    instead = {"ab": "pycurl@multi", "ab?keepalive=false": "pycurl@multi?forbid_reuse=true"}
    assert file.experiment.instead == instead
    monkeypatch.setattr(availability, "which", lambda _: "/usr/bin/ab")
    assert replacements(file.experiment) == {}
    assert file.checked_plan(replaced={}).replaced == {}
    monkeypatch.setattr(availability, "which", lambda _: None)
    plan = file.checked_plan(replaced=replacements(file.experiment))
    assert {arm.strategy for arm in plan.arms if arm.group == "planets"} == set(instead.values())
    assert plan.replaced == instead


def test_a_baseline_and_a_sweep_that_the_machine_cannot_run_leave_a_valid_plan(monkeypatch):
    """The plan has no baseline then, keeps all its claims, and no workload that nothing does."""
    file = read_experiment(bundled()["keepalive"])
    monkeypatch.setattr(availability, "find_spec", lambda name: None if name == "requests" else find_spec(name))
    plan = file.checked_plan()
    assert [arm.name for arm in plan.arms] == ["httpx-client", "httpx-client-behind-link"]
    assert (file.plan().baseline, plan.baseline, plan.claims) == ("per-request", None, file.plan().claims)
    monkeypatch.setattr(availability, "find_spec", lambda name: None if name == "aiohttp" else find_spec(name))
    plan = read_experiment(bundled()["semaphore"]).checked_plan()
    (sweep,) = (claim.arms for claim in plan.claims if claim.kind == "optimum")
    assert plan.unavailable_arms.keys() >= set(sweep)
    assert plan.workloads.keys() == {arm.workload for arm in plan.arms}
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_a_rate_is_an_axis_in_either_form_and_a_bad_one_names_its_line(tmp_path):
    """Arms at 100/s and at 200/s; strategies that need a number of requests have one by the schedule."""
    text = SMALLEST.replace('["urllib3"]', '["aiohttp@gather"]') + 'duration = "2s"\nrate = [100, "200/s"]\n'
    plan = read_experiment(written(tmp_path, text)).checked_plan()
    assert [arm.name for arm in plan.arms] == ["aiohttp@gather[rate=100]", "aiohttp@gather[rate=200/s]"]
    assert [requests_in(plan.workloads[arm.workload]) for arm in plan.arms] == [200, 400]
    with pytest.raises(LabError, match=r"line 5: workloads.w.rate: 0"):
        read_experiment(written(tmp_path, text.replace("[100,", "[0,"))).checked_plan()


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
def test_a_quick_form_judges_no_claim_about_another_link_or_concurrency(changes, judged, tmp_path):
    """It would have the label of the full form. The report lists what is not judged."""
    path = tmp_path / "mine.toml"
    path.write_text(QUICK + changes)
    file = read_experiment(path, quick=True)
    left_out = {"eight", "round-trip", "many"} - set(judged)
    assert [claim.name for claim in file.plan().claims] == judged
    assert {line.partition(":")[0] for line in file.shortened if "claims." in line} == {f"claims.{o}" for o in left_out}


def test_the_quick_forms_of_the_articles_judge_every_claim():
    """At what the claim names: a round trip, and how many requests are in flight."""
    articles = ("six-strategies", "sessions", "semaphore", "keepalive", "frameworks")
    plans = [(read_plan(bundled()[name]), read_plan(bundled()[name], quick=True)) for name in articles]
    assert sum(len(quick.claims) for _, quick in plans) == sum(len(full.claims) for full, _ in plans) == 83
