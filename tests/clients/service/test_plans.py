"""The plans of the service: experiments as their files have them, behind the stack's link."""

from __future__ import annotations

import pytest

from clientlab.cli.run_options import target_options
from clientlab.experiments.file import bundled
from clientlab.service.plans import served_plan
from clientlab.workload.link import Link


@pytest.fixture
def demo(monkeypatch):
    """The plan of the demo in a stack whose variables are these."""

    def call(**variables: str):
        for name in ("LINK_RTT", "LINK_BANDWIDTH"):
            monkeypatch.setenv(name, variables.get(name, ""))
        return served_plan("demo", bundled()["demo"], 2, quick=False)

    return call


def test_an_experiment_without_links_is_measured_behind_that_of_the_stack(demo):
    """The run states it as a change, and its command measures the same from a terminal."""
    plan = demo(LINK_RTT="35ms", LINK_BANDWIDTH="20mbit")
    assert {arm.link for arm in plan.arms} == {Link(0.035, 2e7)}
    assert plan.command == "clientlab run demo --rounds 2 --rtt=35ms --bandwidth=20000000bit"
    assert plan.changed == ["link: none → 35 ms, 20 Mbit/s"]
    assert target_options(plan.command)["testbed"] == "local"


def test_in_a_stack_without_a_link_it_is_as_its_file_has_it(demo):
    """Nothing was changed."""
    plan = demo()
    assert (plan.links, plan.changed, plan.command) == ([], [], "clientlab run demo --rounds 2")


def test_an_article_is_measured_without_its_control_arms_behind_another_link(monkeypatch):
    """In a stack with a link and in one without; the plan names the arms that are left out."""
    monkeypatch.delenv("LINK_RTT", raising=False)
    monkeypatch.delenv("LINK_BANDWIDTH", raising=False)
    plain = served_plan("keepalive", bundled()["keepalive"], None, quick=False)
    monkeypatch.setenv("LINK_RTT", "35ms")
    behind = served_plan("keepalive", bundled()["keepalive"], None, quick=False)
    assert [arm.name for arm in behind.arms] == ["per-request", "session", "httpx-client"]
    assert (plain.links, behind.links) == ([], [Link(0.035)])
    left_out = "without the arms behind a link: per-request-behind-link, session-behind-link, httpx-client-behind-link"
    assert plain.changed == [left_out]
    assert behind.changed == [left_out, "link: none → 35 ms"]
    assert {claim.name for claim in plain.claims}.isdisjoint({"session-saves-as-computed", "httpx-as-session-at-20ms"})
