"""Ceilings: which servers and requests are measured before the first round, and what is kept of a failure."""

from __future__ import annotations

import pytest

from clientlab.conformance.server import counting_server
from clientlab.errors import LabError
from clientlab.experiments.checks import check_served
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.planning import make_plan
from clientlab.running.ceilings import STRATEGIES, measured_ceilings, targets_of
from clientlab.strategies import client_spec, find
from clientlab.testbeds.external import ExternalTarget
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload
from clients.test_apache_bench import answer


def a_plan(strategies=("aiohttp@workers",), upstreams=("aiohttp",), **workloads):
    return make_plan(
        Experiment(
            name="mine",
            question="Mine?",
            strategies=list(strategies),
            upstreams=list(upstreams),
            ceilings=True,
            workloads={name: WorkloadTable(first=workload) for name, workload in workloads.items()},
        )
    )


def test_arms_with_one_request_share_a_ceiling():
    """However many they send, at whatever concurrency and delay; not with another path, upstream or body."""
    plan = a_plan(
        ["aiohttp@workers", "urllib3"], ["aiohttp", "flask"],
        small=Workload(), delayed=Workload(delay=Delay.parse("50ms"), concurrency=64, requests=10),
        longer=Workload(duration=3.0), other=Workload(path="/todos/1"),
    )  # fmt: skip
    found = targets_of(plan)
    assert [(one.upstream, one.workload.path, one.connections, one.delayed) for one in found] == [
        ("aiohttp", "/", 64, True), ("flask", "/", 64, True), ("aiohttp", "/todos/1", 32, False),
        ("flask", "/todos/1", 32, False),
    ]  # fmt: skip
    assert sorted(name for one in found for name in one.arms) == sorted(arm.name for arm in plan.arms)
    assert {one.workload.delay for one in found} == {None}


def test_connections_of_a_ceiling_are_bounded():
    """One in flight would measure the round trip; thousands make no server faster."""
    one, many = (
        targets_of(a_plan(small=Workload(concurrency=concurrency)))[0].connections for concurrency in (1, 5000)
    )
    assert (one, many) == (32, 256)


def test_versions_of_http_have_ceilings_of_their_own():
    """A server may answer one of them at another rate."""
    found = targets_of(a_plan(["aiohttp@workers", "httpx-async-h2@workers"], small=Workload()))
    assert [(one.http, one.arms) for one in found] == [("1.1", ["aiohttp@workers"]), ("2", ["httpx-async-h2@workers"])]
    for http, names in STRATEGIES.items():
        assert {client_spec(find(name).client).http for name in names} == {http}


@pytest.mark.slow
def test_a_server_that_refuses_has_no_ceiling_but_a_reason():
    """Of a server of one's own, the limit is unknown as well: it has no counters."""
    with counting_server(lambda seen: answer(seen, "503 Service Unavailable"), hold=0.002) as server:
        lines = []
        target = ExternalTarget(server.url)
        (found,) = measured_ceilings(a_plan(upstreams=[target.name], small=Workload()), target, lines.append)
    assert (found.requests_per_second, found.verdict) == (None, None)
    assert found.reason == f"{found.generator} got no response with a status below 400"
    assert lines == [f"ceiling of {target.name}, direct: 2 s with 32 connections"]


def test_the_service_refuses_an_experiment_with_ceilings():
    """The service refuses an experiment with ceilings, because its workers measure trials only."""
    with pytest.raises(LabError, match="experiment 'mine' measures ceilings of its servers"):
        check_served(a_plan(small=Workload()))
