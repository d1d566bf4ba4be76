"""Ceilings: which servers and requests are measured before the first round, and what is kept of a failure."""

from __future__ import annotations

from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.planning import make_plan
from clientlab.running.ceilings import targets_of
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload


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
