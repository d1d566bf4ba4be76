"""Experiments, bundled and in files, with the values of a request, and on machines that
lack something.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from clientlab import strategies
from clientlab.cli.run import run
from clientlab.errors import LabError
from clientlab.experiments import plan_checks
from clientlab.experiments.file import bundled, read_experiment, read_plan
from clientlab.experiments.planning import make_plan
from clientlab.experiments.request import RunRequest, override
from clientlab.results.plan import Plan
from clientlab.settings import find_upstream
from clientlab.workload.values import Link, Stages
from clients.plans import checked_plan


@pytest.mark.parametrize("name", bundled())
@pytest.mark.parametrize("quick", [False, True])
def test_every_bundled_experiment_can_be_run(name, quick):
    plan = checked_plan(bundled()[name], quick=quick)
    for arm in plan.arms:
        assert find_upstream(arm.upstream)
    assert plan.name == name
    assert plan.question.endswith("?")


def test_a_file_needs_little_and_the_rest_has_defaults(mine):
    found = read_experiment(
        mine('question = "Which?"\nstrategies = ["urllib3"]\n[workloads.w]\n')
    )
    assert found.upstreams == ["aiohttp"]
    assert found.routes == ["direct"]
    assert found.rounds == 3
    assert found.seed is None
    assert found.workloads["w"].first.load.requests == 1000


def test_an_experiment_may_name_replacements_for_missing_strategies(monkeypatch):
    instead = {
        "ab": "pycurl@multi",
        "ab?keepalive=false": "pycurl@multi?forbid_reuse=true",
    }
    monkeypatch.setattr(strategies, "which", lambda _: "/usr/bin/ab")
    assert checked_plan(bundled()["frameworks"]).replaced == {}
    monkeypatch.setattr(strategies, "which", lambda _: None)
    plan = checked_plan(bundled()["frameworks"])
    assert {arm.strategy for arm in plan.arms if arm.group == "planets"} == set(
        instead.values()
    )
    assert plan.replaced == instead


def test_a_baseline_and_a_sweep_that_the_machine_cannot_run_leave_a_valid_plan(
    monkeypatch,
):
    full = read_plan(bundled()["keepalive"])
    monkeypatch.setattr(
        strategies,
        "find_spec",
        lambda name: None if name == "requests" else find_spec(name),
    )
    plan = checked_plan(bundled()["keepalive"])
    assert [arm.name for arm in plan.arms] == [
        "httpx-client",
        "httpx-client-behind-link",
    ]
    assert full.baseline == "per-request"
    assert plan.baseline is None
    assert plan.claims == full.claims
    monkeypatch.setattr(
        strategies,
        "find_spec",
        lambda name: None if name == "aiohttp" else find_spec(name),
    )
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
        (
            {"routes": ("proxy",)},
            {"requests", "requests-session", "pycurl", "aiohttp@workers"},
        ),
    ],
)
def test_given_strategies_and_routes_replace_the_arms_of_the_demo(given, arms):
    """No claim is about these arms."""
    demo = read_experiment(bundled()["demo"])
    assert {
        arm.name for arm in make_plan(override(demo, RunRequest(**given))).arms
    } == arms


def test_options_win_over_the_experiment_and_the_plan_says_what_was_changed(mine):
    text = (
        'question = "?"\nstrategies = ["urllib3"]\nrounds = 5\n[workloads.a]\nduration'
        ' = "60s"\n[workloads.b]\n'
    )
    plan = checked_plan(
        mine(text + "requests = 7\n"),
        strategies=("http.client",),
        settings={"rounds": 1},
        workload={"requests": 3},
    )
    assert plan.rounds == 1
    assert {arm.strategy for arm in plan.arms} == {"http.client"}
    loads = {name: workload.load for name, workload in plan.workloads.items()}
    assert {name: (load.requests, load.duration) for name, load in loads.items()} == {
        "a": (3, None),
        "b": (3, None),
    }
    assert "requests: 7 → 3" in plan.changed


def test_control_arms_behind_their_own_link_are_left_out_of_a_run_behind_another():
    full, plan = (
        checked_plan(bundled()["keepalive"], **given)
        for given in ({}, {"rtt": (0.001,)})
    )
    assert {arm.name: arm.link for arm in plan.arms} == dict.fromkeys(
        ["per-request", "session", "httpx-client"], Link(0.001)
    )
    assert 0 < len(plan.claims) < len(full.claims)
    assert any("httpx-client-behind-link" in line for line in plan.changed)


@pytest.mark.parametrize(
    ("given", "budget"),
    [({}, 60.0), ({"precision": 0.05}, None), ({"rounds": 4, "budget": 90.0}, 90.0)],
)
def test_a_number_of_rounds_or_a_precision_replaces_the_budget(given, budget):
    demo = read_experiment(bundled()["demo"])
    assert override(demo, RunRequest(settings=given)).budget == budget


def test_a_precision_limits_the_time_by_the_budget(mine):
    file = mine(
        'precision = "3%"\nquestion = "?"\nstrategies = ["urllib3"]\n[workloads.w]\n'
    )
    plan = checked_plan(file, settings={"precision": "3%", "budget": "90s"})
    assert plan.precision == 0.03
    assert plan.time_budget == 90.0
    assert plan.budget is None
    assert plan.rounds == 5
    plan = checked_plan(file, settings={"budget": "90s"})
    assert plan.precision == 0.03
    assert plan.time_budget == 90.0
    assert plan.budget is None


def test_an_arm_that_needs_too_many_open_files_is_left_out_of_a_bundled_one(
    mine, monkeypatch
):
    monkeypatch.setattr(plan_checks.resource, "getrlimit", lambda _: (1024, 8000))
    plan = checked_plan(bundled()["httpx2"])
    assert {name.rpartition("=")[2] for name in plan.unavailable_arms} == {"16000]"}
    table = "[workloads.w]\nrequests = 9000\nconcurrency = 7937\n"
    with pytest.raises(
        LabError, match=r"8,001 open files are needed, and the hard limit is 8,000"
    ):
        checked_plan(mine(f'question = "?"\nstrategies = ["aiohttp@workers"]\n{table}'))


QUICK = """
question = "Which?"
workloads.w = { requests = 100, delay = "10ms" }
[arms]
near = { strategy = "urllib3@threads", concurrency = 8 }
near-session = { strategy = "requests-session@threads", concurrency = 8 }
far = { strategy = "urllib3@threads", rtt = "121ms" }
wide = { strategy = "aiohttp@workers", concurrency = [16, 4000] }
[claims]
eight = { text = "urllib3 is faster", kind = "less", a = "near", b = "near-session" }
round-trip = { text = "121 ms take longer", kind = "less", a = "near", b = "far" }
many = { text = "More is slower", kind = "less", a = "wide[first]", b = "wide[last]" }
[quick]
rounds = 1
"""


@pytest.mark.parametrize(
    ("changes", "judged"),
    [
        (
            '[quick.workloads.w]\nrequests = 10\ndelay = "1ms"',
            ["eight", "round-trip", "many"],
        ),
        ('[quick.arms.far]\nrtt = "60ms"', ["eight", "many"]),
        ("[quick.arms.near]\nconcurrency = 4", ["many"]),
        ("[quick.arms.wide]\nconcurrency = [16, 900]", ["eight", "round-trip"]),
    ],
)
def test_a_quick_form_judges_no_claim_about_another_link_or_concurrency(
    changes, judged, mine
):
    plan = read_plan(mine(QUICK + changes), quick=True)
    left_out = {"eight", "round-trip", "many"} - set(judged)
    assert [claim.name for claim in plan.claims] == judged
    assert {line.partition(":")[0] for line in plan.shortened if "claims." in line} == {
        f"claims.{o}" for o in left_out
    }


def test_the_quick_forms_of_the_articles_judge_every_claim():
    for name in ("six-strategies", "sessions", "semaphore", "keepalive", "frameworks"):
        full, quick = (
            read_plan(bundled()[name], quick=quick) for quick in (False, True)
        )
        assert len(quick.claims) == len(full.claims) > 1


def test_the_request_has_the_values_that_were_given(monkeypatch, tmp_path):
    """0 is a value; an option that was not given leaves the experiment's value."""

    def parse(*words: str) -> RunRequest:
        return RunRequest.from_options(run.make_context("run", list(words)).params, "")

    monkeypatch.delenv("CLIENTLAB_CLUSTER", raising=False)
    (tmp_path / "body.json").write_bytes(b'{"a":\r\n1}')
    (tmp_path / "image").write_bytes(b"\xff\r\n")
    request = parse(
        "demo",
        "-t",
        "aiohttp",
        "-t",
        "urllib3",
        "-n",
        "0",
        "-d",
        "150ms",
        "--until-precision",
        "3%",
        "--quick",
        "--route",
        "proxy",
        "--method",
        "post",
        "--header",
        "X-A: 1",
        "--header",
        "X-B:2",
        "--ca-file",
        "ca.pem",
        "--body",
        f"@{tmp_path / 'body.json'}",
        "--seed",
        "0",
        "--rtt",
        "1ms,2s",
        "--rate",
        "0s:5/s,1s:9/s",
    )
    assert request == RunRequest(
        command="",
        experiment="demo",
        strategies=("aiohttp", "urllib3"),
        quick=True,
        routes=("proxy",),
        rtt=(0.001, 2.0),
        ca_file=Path("ca.pem"),
        settings={"precision": "3%", "seed": 0},
        workload={
            "requests": 0,
            "duration": 0.15,
            "method": "POST",
            "headers": {"X-A": "1", "X-B": "2"},
            "body": '{"a":\r\n1}',
            "stages": Stages.parse("0s:5/s,1s:9/s"),
        },
    )
    assert parse("--rate", "5/s").workload == {"rate": 5.0}
    assert parse("--body", f"@{tmp_path / 'image'}").workload == {"body_base64": "/w0K"}
    assert parse("--url", "http://h/?a=http://x").url == {"": "http://h/?a=http://x"}
    named = {"base": "http://h/?a=b", "head": "https://h"}
    assert (
        parse(
            *(
                word
                for name, url in named.items()
                for word in ("--url", f"{name}={url}")
            )
        ).url
        == named
    )
