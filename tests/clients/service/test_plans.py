"""The plans of the service: experiments as their files have them, behind the stack's link."""

from __future__ import annotations

import pytest

from clientlab.experiments.file import bundled
from clientlab.service.plans import served_plan
from clientlab.service.schemas import Wanted
from clientlab.workload.link import Link


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
    plan = demo(LINK_RTT="35ms", LINK_BANDWIDTH="20mbit")
    assert {arm.link for arm in plan.arms} == {Link(0.035, 2e7)}
    assert plan.command == "clientlab run demo --rounds 2 --rtt=35ms --bandwidth=20mbit"
    assert plan.changed == ["link: none → 35 ms, 20 Mbit/s"]


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
