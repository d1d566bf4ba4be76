"""Runs as metrics, as Prometheus reads them off the service."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from clients.documents import a_failed_trial, a_run, a_trial
from clients.service.requests_to_lab import asked, keep


def test_finished_runs_are_metrics(store):
    """The figures of the run file: medians over rounds, an interval from three on, errors in all."""
    walls = (1.0, 2.0, 4.0)
    trials = [a_trial("urllib3", number, wall, errors={"reset": 1}) for number, wall in enumerate(walls, 1)]
    keep(store, a_run(*trials, a_failed_trial("pycurl")))
    keep(store, a_run(a_trial(), name="20240507-070809-run-abcd").model_copy(update={"status": "running"}))
    found = {}
    for family in text_string_to_metric_families(asked(store, "GET", "/metrics")[1]):
        for sample in family.samples:
            if "run" in sample.labels:
                assert sample.labels["run"] == "20240506-070809-run-abcd"
                key = (
                    sample.name.removeprefix("clientlab_run_"),
                    sample.labels.get("quantile", sample.labels.get("verdict")),
                )
                found[key] = sample.value
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
