"""Which CPUs each part gets, and that the processes stay on them."""

from __future__ import annotations

import os

import pytest

from clientlab.conformance.server import counting_server
from clientlab.errors import FieldError
from clientlab.machine.usage import cpu_usable
from clientlab.observing.measurement import TrialEvents
from clientlab.testbeds.local import group_by_core, place, place_here
from clientlab.testbeds.servers import choose_workers
from clientlab.workload.workload import make_workload
from clients.measured import measure, trial_processes

needs_affinity = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="only Linux has affinity"
)


@pytest.mark.parametrize(
    ("cores", "proxied", "client", "upstream", "proxy"),
    [
        (2, False, [1], [0], []),
        (2, True, [1], [0], [0]),
        (3, True, [2], [0], [1]),
        (8, True, [4, 5, 6, 7], [0, 1], [2, 3]),
    ],
)
def test_client_and_servers_never_share_a_core(cores, proxied, client, upstream, proxy):
    """Upstream and proxy share a core if there is only one for both."""
    found = place([[cpu] for cpu in range(cores)], proxied=proxied)
    assert found.client == client
    assert found.upstream == upstream
    assert found.proxy == proxy


def test_both_threads_of_a_core_go_to_one_part(tmp_path):
    """Unless there is only one core, or the system does not show the threads."""
    for cpu, siblings in {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}.items():
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{siblings}\n")
    assert group_by_core([0, 1, 2, 3], tmp_path) == [[0, 2], [1, 3]]
    assert group_by_core([0, 2], tmp_path) == [[0], [2]]
    assert group_by_core([0, 1, 2], tmp_path / "none") == [[0], [1], [2]]


@needs_affinity
def test_one_core_is_not_divided(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    with pytest.raises(FieldError, match="two cores"):
        place_here(proxied=False)


@pytest.mark.real
@needs_affinity
def test_all_processes_of_a_trial_stay_on_their_cpus():
    cpu = max(os.sched_getaffinity(0))
    found = []

    def note() -> None:
        found.extend(process.cpu_affinity() for process in trial_processes())

    with counting_server() as server:
        workload = make_workload(
            requests=4, warmup=0, concurrency=2, connections="warm"
        )
        measure(
            "urllib3@processes",
            workload,
            server.url,
            cpus=[cpu],
            events=TrialEvents(note),
        )
    assert found == [[cpu]] * 3  # the pool has two


@needs_affinity
def test_an_upstream_has_a_process_for_half_of_the_usable_cores(monkeypatch):
    """A container of 2 CPUs on a host of 64 would otherwise start 64 processes."""
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    workers = choose_workers(8)
    assert workers.aiohttp == max(1, int(cpu_usable() / 2))
    assert workers.flask == max(2, workers.aiohttp)
