"""Stored runs as metrics, as Prometheus reads them from the exporter."""

from __future__ import annotations

import socket
import threading
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from clientlab.cluster.exporter import StoredRuns, make_server
from clientlab.errors import LabError
from clientlab.results.store import Store
from clients.documents import a_failed_trial, a_run, a_trial


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def keep(store: Store, run) -> None:
    """Put a run into the store."""
    store.claim(run.run)
    store.save(run)


def samples(store: Store):
    """All samples of the exporter's page."""
    said = []
    page = StoredRuns(store, said.append).render().decode()
    assert not said
    return [sample for family in text_string_to_metric_families(page) for sample in family.samples]


def test_finished_runs_are_metrics(store):
    """The figures of the run file: medians over rounds, an interval from three rounds on, and the sum of errors."""
    walls = (1.0, 2.0, 4.0)
    trials = [a_trial("urllib3", number, wall, errors={"reset": 1}) for number, wall in enumerate(walls, 1)]
    keep(store, a_run(*trials, a_failed_trial("pycurl")))
    found = {}
    for sample in samples(store):
        if sample.name.startswith("clientlab_run_"):
            assert sample.labels["run"] == "20240506-070809-run-abcd"
            more = sample.labels.get("quantile", sample.labels.get("verdict"))
            found[sample.name.removeprefix("clientlab_run_"), more] = sample.value
    expected = {
        "wall_seconds": 2.0, "requests_per_second": 500, "rounds": 3, "concurrency": 1, "errors": 3, "info": 1,
        "cpu_seconds_per_request": 0.5 / 999, "peak_memory_bytes": 32 << 20, "peak_rss_bytes": 40 << 20,
        "connections_opened": 1, "created_timestamp_seconds": 1714979289,
    }  # fmt: skip
    assert {name: found[name, None] for name in expected} == expected
    assert found["requests_per_second_low", None] < 500 < found["requests_per_second_high", None]
    assert (found["latency_seconds", "0.5"], found["latency_seconds", "0.99"]) == (0.002, 0.009)
    assert found["verdict", "client-bound"] == 1
    assert ("overhead_seconds", None) not in found


def test_the_run_in_progress_has_metrics_of_its_own_and_a_schedule(store):
    run = a_run(a_trial(), rounds=3).model_copy(update={"status": "running"})
    keep(store, run)
    with store.hold(run.run):
        page = {(sample.name, sample.labels.get("state")): sample.value for sample in samples(store)}
    assert page["clientlab_present_wall_seconds", None] == 1
    assert [page["clientlab_schedule_trials", state] for state in ("done", "failed", "left")] == [1, 0, 2]
    assert ("clientlab_run_wall_seconds", None) not in page
    store.save(run.model_copy(update={"status": "done"}))
    names = {sample.name for sample in samples(store)}
    assert "clientlab_run_wall_seconds" in names
    assert not names & {"clientlab_present_wall_seconds", "clientlab_schedule_trials"}


@pytest.mark.real
def test_the_page_is_served_over_ipv6(store):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    keep(store, a_run(a_trial()))
    with make_server(store, "::1", 0, print) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with urllib.request.urlopen(f"http://[::1]:{server.server_port}/metrics", timeout=10) as answer:
            assert answer.status == 200
        server.shutdown()


@pytest.mark.real
def test_the_page_is_served_and_a_damaged_run_hides_no_other(store):
    keep(store, a_run(a_trial()))
    keep(store, a_run(a_trial(), name="damaged"))
    (store.folder / "damaged" / "run.json").write_text("{")
    said = []
    with make_server(store, "127.0.0.1", 0, said.append) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=10) as answer:
            assert "clientlab_run_wall_seconds{" in answer.read().decode()
        with pytest.raises(LabError, match="choose another"):
            make_server(store, "127.0.0.1", server.server_port, said.append)
        server.shutdown()
    assert "damaged" in said[0]
