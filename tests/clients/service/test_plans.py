"""The plans of the service: experiments as their files have them, behind the stack's link."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

from clientlab.errors import LabError
from clientlab.experiments.file import bundled, read_plan
from clientlab.service.plans import served_plan
from clientlab.service.schemas import Wanted
from clientlab.strategies import availability
from clientlab.workload.link import Link
from clients.service.requests_to_lab import asked, form


@pytest.fixture
def demo(monkeypatch):
    """The plan of the demo in a stack whose variables are these."""

    def call(**variables: str):
        for name in ("LINK_RTT", "LINK_BANDWIDTH", "LINK_BUFFER"):
            monkeypatch.setenv(name, variables.get(name, ""))
        return served_plan(Wanted(experiment="demo", rounds=2), bundled()["demo"])

    return call


def test_an_experiment_without_links_is_measured_behind_that_of_the_stack(demo):
    """The run states it as a change, and its command measures the same from a terminal."""
    plan = demo(LINK_RTT="35ms", LINK_BANDWIDTH="20mbit", LINK_BUFFER="64KiB")
    assert {arm.link for arm in plan.arms} == {Link(0.035, 2e7, 65_536)}
    assert plan.command == "clientlab run demo --rounds 2 --rtt=35ms --bandwidth=20mbit --buffer=64KiB"
    assert plan.changed == ["link: none → 35 ms, 20 Mbit/s, buffer of 64 KiB"]


def test_in_a_stack_without_a_link_it_is_as_its_file_has_it(demo):
    """Without a link in the stack, the service plans an experiment exactly as its file states."""
    plan = demo()
    assert (plan.links, plan.changed, plan.command) == ([], [], "clientlab run demo --rounds 2")


def test_an_article_is_measured_without_its_control_arms_behind_another_link(monkeypatch):
    """In a stack with a link and in one without; the plan names the arms that are left out."""
    monkeypatch.delenv("LINK_RTT", raising=False)
    monkeypatch.delenv("LINK_BANDWIDTH", raising=False)
    plain = served_plan(Wanted(experiment="keepalive"), bundled()["keepalive"])
    monkeypatch.setenv("LINK_RTT", "35ms")
    behind = served_plan(Wanted(experiment="keepalive"), bundled()["keepalive"])
    assert [arm.name for arm in behind.arms] == ["per-request", "session", "httpx-client"]
    assert (plain.links, behind.links) == ([], [Link(0.035)])
    left_out = "without the arms behind a link: per-request-behind-link, session-behind-link, httpx-client-behind-link"
    assert plain.changed == [left_out]
    assert behind.changed == [left_out, "link: none → 35 ms"]
    assert {claim.name for claim in plain.claims}.isdisjoint({"session-saves-as-computed", "httpx-as-session-at-20ms"})


def test_strategies_and_shards_replace_those_of_the_experiment(demo):
    """The run states both as changes, and its command repeats it."""
    demo()
    wanted = Wanted(experiment="demo", strategies=["aiohttp@workers"], shards=4, rounds=2)
    plan = served_plan(wanted, bundled()["demo"])
    assert {arm.strategy for arm in plan.arms} == {"aiohttp@workers"}
    assert {workload.shards for workload in plan.workloads.values()} == {4}
    assert plan.command == "clientlab run demo -t aiohttp@workers --rounds 2 --shards 4"
    assert plan.changed[-1] == "shards: 1 → 4"
    assert plan.changed[0].endswith("→ aiohttp@workers")


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        (Wanted(experiment="demo", shards=2), "has at most 1 requests in flight here; write no more shards"),
        (Wanted(experiment="sessions", strategies=["requests"]), "it names its arms; leave out strategies"),
        (Wanted(experiment="demo", strategies=["nothing"]), "nothing"),
    ],
)
def test_what_an_experiment_can_not_be_is_refused_with_one_line(demo, wanted, line):
    """The service refuses an invalid experiment in one line before anything is measured."""
    demo()
    with pytest.raises(LabError, match=re.escape(line)) as refused:
        served_plan(wanted, bundled()[wanted.experiment])
    assert "\n" not in str(refused.value)


def test_shards_do_not_replace_an_axis(demo, tmp_path):
    """The experiment compares numbers of shards: its file decides."""
    demo()
    file = tmp_path / "axis.toml"
    file.write_text('question = "?"\nstrategies = ["aiohttp@workers"]\n[workloads.w]\nshards = [1, 2]\nrequests = 9\n')
    with pytest.raises(LabError, match="shards is an axis of workload 'w'; change it in a file"):
        served_plan(Wanted(experiment=str(file), shards=2), file)


@pytest.fixture
def without_wreq(monkeypatch) -> list[str]:
    """A machine that lacks a library: the atlas's arms that need it, and why they can't be measured."""
    monkeypatch.setattr(availability, "find_spec", lambda name: None if name == "wreq" else find_spec(name))
    return [arm.name for arm in read_plan(bundled()["atlas"]).arms if arm.strategy.startswith("wreq")]


LACKS = "wreq is not installed; pip install 'clientlab[more]'"


def test_a_bundled_experiment_is_served_without_the_arms_that_the_machine_cannot_run(without_wreq):
    """Strategies that the user names, and those of a file of the user's own, are refused."""
    plan = served_plan(Wanted(experiment="atlas"), bundled()["atlas"])
    assert plan.unavailable_arms == dict.fromkeys(without_wreq, LACKS)
    assert len(without_wreq) > 10
    assert not any(arm.strategy.startswith("wreq") for arm in plan.arms)
    with pytest.raises(LabError, match=re.escape(f"strategy 'wreq' is unavailable: {LACKS}")):
        served_plan(Wanted(experiment="demo", strategies=["wreq"]), bundled()["demo"])


def test_the_log_of_the_service_names_the_arms_that_are_left_out(without_wreq, store, caplog):
    """In one line, when the run begins."""
    caplog.set_level("INFO", "clientlab.service")
    status, _, _ = asked(store, "POST", "/start", **form(experiment="atlas", rounds="1"))
    assert status == 303
    lines = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert lines == [f"left out: {', '.join(without_wreq)} ({LACKS})"]
