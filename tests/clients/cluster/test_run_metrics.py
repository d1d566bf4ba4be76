"""Stored runs as metrics, as Prometheus reads them off the exporter."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from clientlab.cluster.exporter import StoredRuns
from clientlab.results.store import Store
from clients.documents import a_failed_trial, a_run, a_trial


def keep(store: Store, run) -> None:
    """Put a run into the store."""
    store.claim(run.run)
    store.save(run)


def samples(store: Store):
    """All samples of the exporter's page."""
    said = []
    page = StoredRuns(store, said.append).page().decode()
    assert not said
    return [sample for family in text_string_to_metric_families(page) for sample in family.samples]


def test_finished_runs_are_metrics(tmp_path):
    """The figures of the run file: medians over rounds, an interval from three on, errors in all."""
    store = Store(tmp_path)
    walls = (1.0, 2.0, 4.0)
    trials = [a_trial("urllib3", number, wall, errors={"reset": 1}) for number, wall in enumerate(walls, 1)]
    keep(store, a_run(*trials, a_failed_trial("pycurl")))
    found = {}
    for sample in samples(store):
        if sample.name.startswith("clientlab_run_"):
            assert sample.labels["run"] == "20240506-070809-run-abcd"
            more = sample.labels.get("quantile", sample.labels.get("verdict"))
            found[sample.name.removeprefix("clientlab_run_"), more] = sample.value
    assert found["wall_seconds", None] == 2.0
    assert found["requests_per_second", None] == 500
    assert found["requests_per_second_low", None] < 500 < found["requests_per_second_high", None]
    assert (found["rounds", None], found["concurrency", None]) == (3, 1)
    assert (found["latency_seconds", "0.5"], found["latency_seconds", "0.99"]) == (0.002, 0.009)
    assert found["cpu_seconds_per_request", None] == 0.5 / 999
    assert found["peak_memory_bytes", None] == 32 << 20
    assert found["peak_rss_bytes", None] == 40 << 20
    assert found["connections_opened", None] == 1
    assert found["errors", None] == 3
    assert found["verdict", "client-bound"] == 1
    assert found["created_timestamp_seconds", None] == 1714979289
    assert found["info", None] == 1
    assert ("overhead_seconds", None) not in found


def test_the_run_in_progress_is_published_under_names_of_its_own(tmp_path):
    """With its schedule; a run that ends moves to the finished ones, and a damaged file hides no other run."""
    store = Store(tmp_path)
    run = a_run(a_trial()).model_copy(update={"status": "running"})
    keep(store, run)
    with store.hold(run.run):
        page = {sample.name for sample in samples(store)}
    assert {"clientlab_present_wall_seconds", "clientlab_schedule_trials"} <= page
    assert "clientlab_run_wall_seconds" not in page
    store.save(run.model_copy(update={"status": "done"}))
    page = {sample.name for sample in samples(store)}
    assert "clientlab_run_wall_seconds" in page
    assert "clientlab_present_wall_seconds" not in page
