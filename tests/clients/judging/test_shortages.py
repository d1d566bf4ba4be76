"""What a plan needs and the system lacks: refused where trials would surely fail, a caution where they may."""

from __future__ import annotations

import pytest

from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.planning import make_plan
from clientlab.judging.cautions import cautions_of
from clientlab.judging.shortages import OWN_FILES, shortages
from clientlab.results.document import SystemLimits
from clientlab.results.surroundings import system_limits
from clientlab.workload.workload import Workload
from clients.documents import SURROUNDINGS, a_run, a_trial

AMPLE = SystemLimits(
    open_files=1 << 20, ephemeral_ports=60_000, time_wait_reuse=2, listen_backlog=1 << 16, free_memory_bytes=1 << 40
)
SERVED = ("aiohttp", "flask")


def plan_of(strategy: str, route: str = "direct", upstream: str = "aiohttp", **workload):
    """A plan of one strategy."""
    experiment = Experiment(
        name="x", question="Why?", strategies=[strategy], upstreams=[upstream], routes=[route],
        workloads={"workload": WorkloadTable(first=Workload(**workload))},
    )  # fmt: skip
    return make_plan(experiment)


def found(plan, served=SERVED, **limits) -> list[tuple[str, bool]]:
    """Kind of each shortage, and whether it is fatal; each has a command."""
    system = AMPLE.model_copy(update=limits)
    made = shortages(plan, system, served)
    assert all(one.arms == [plan.arms[0].name] for one in made)
    return [(one.kind, one.fatal) for one in made]


MANY = {"concurrency": 5000, "requests": 9000}


@pytest.mark.parametrize(
    ("strategy", "workload", "limits", "kinds"),
    [
        ("aiohttp@workers", MANY, {}, []),
        ("aiohttp@workers", MANY, {"open_files": 5000 + OWN_FILES}, []),
        ("aiohttp@workers", MANY, {"open_files": 5000}, [("open-files", True)]),
        ("aiohttp@workers", MANY | {"rate": 10}, {"open_files": 5000}, [("open-files", False)]),
        ("requests-session@processes", {"concurrency": 500}, {"open_files": 1000}, [("open-files", True)]),
        ("aiohttp@workers", MANY, {"ephemeral_ports": 4999}, [("ephemeral-ports", True)]),
        ("requests", {"requests": 70_000}, {"time_wait_reuse": 0}, [("ephemeral-ports", False)]),
        ("requests-session", {"requests": 70_000}, {"ephemeral_ports": 500, "time_wait_reuse": 0}, []),
        ("aiohttp@workers", MANY, {"listen_backlog": 4096}, [("listen-backlog", False)]),
        ("aiohttp@workers", MANY | {"connections": "warm"}, {"listen_backlog": 4096}, []),
        ("aiohttp@workers", MANY, {"free_memory_bytes": 200 << 20}, [("free-memory", False)]),
        ("aiohttp@workers", MANY, dict.fromkeys(("ephemeral_ports", "listen_backlog", "free_memory_bytes")), []),
    ],
)  # fmt: skip
def test_a_plan_is_compared_with_each_limit(strategy, workload, limits, kinds):
    """What the plan surely needs is fatal; what it may need is not, and what the system does not show is neither."""
    assert found(plan_of(strategy, **workload), **limits) == kinds


def test_a_proxy_needs_two_open_files_for_each_request():
    """Its own limit may be reached where that of the client is not; of servers of others nobody knows it."""
    plan = plan_of("aiohttp@workers", route="proxy", **MANY)
    assert found(plan, open_files=9000) == [("open-files", False)]
    assert found(plan, open_files=9000, served=()) == []


def test_the_limits_in_a_run_file_are_a_caution_of_the_run():
    """Of a file of earlier versions there is none, and none for a strategy that is not installed here."""
    short = SURROUNDINGS.model_copy(update={"limits": AMPLE.model_copy(update={"time_wait_reuse": 0})})
    run = a_run(*(a_trial("requests", number) for number in (1, 2, 3)), workloads={"workload": Workload(duration=9.0)})
    kinds = [caution.kind for caution in cautions_of(run.model_copy(update={"surroundings": short}))]
    assert kinds == ["ephemeral-ports"]
    assert cautions_of(run) == []
    foreign = a_run(*(a_trial("nobody-has-this", number) for number in (1, 2, 3)))
    assert cautions_of(foreign.model_copy(update={"surroundings": short})) == []


def test_the_limits_are_those_of_the_kernels_files(tmp_path):
    """Reserved ports are not chosen; what is missing is unknown."""
    for name, text in {"ipv4/ip_local_port_range": "1000\t1999\n", "ipv4/ip_local_reserved_ports": "990-1009,1500\n",
                       "ipv4/tcp_tw_reuse": "2\n", "core/somaxconn": "4096\n"}.items():  # fmt: skip
        path = tmp_path / "proc/sys/net" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    here = system_limits(tmp_path)
    assert (here.ephemeral_ports, here.time_wait_reuse, here.listen_backlog) == (989, 2, 4096)
    none = system_limits(tmp_path / "none")
    assert (none.ephemeral_ports, none.time_wait_reuse, none.listen_backlog) == (None, None, None)
    assert here.open_files > 0 < here.free_memory_bytes
