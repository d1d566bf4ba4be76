"""The metrics of a trial, off a sample log that the test writes."""

from __future__ import annotations

import time

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from clientlab.cluster.live_metrics import TrialMetrics
from clientlab.results.labels import ARM
from clientlab.samples.log import SampleLog, begin_schedule
from clientlab.workload.delays import Delay
from clientlab.workload.shard_workload import share_of
from clientlab.workload.workload import Workload, delay_of
from clients.documents import a_trial

RUN = "20240506-070809-small-abcd"


class Page:
    """An exporter's page, read as Prometheus reads it."""

    def __init__(self, folder, workload: Workload) -> None:
        self.exporter = TrialMetrics(RUN, "small", a_trial(concurrency=4), workload, folder)
        self.registry = CollectorRegistry()
        self.registry.register(self.exporter)

    def scrape(self) -> dict[str, float]:
        """The samples by name, and by what they have for labels beside a trial's own."""
        found = {}
        for family in text_string_to_metric_families(generate_latest(self.registry).decode()):
            for sample in family.samples:
                if sample.labels:
                    assert sample.labels["run"] == RUN
                    assert set(ARM) <= set(sample.labels)
                more = [value for label, value in sample.labels.items() if label not in ARM]
                found[" ".join([sample.name.removeprefix("clientlab_"), *more])] = sample.value
        return found


@pytest.fixture
def log(tmp_path):
    made = SampleLog(tmp_path, 0, 100)
    made.begin()
    yield made
    made.close(0)


def test_requests_are_counted_by_outcome_and_their_seconds_in_buckets(tmp_path, log):
    """Errors by their kind and in the last bucket, however fast; a kind that is none of the listed ones is "other"."""
    page = Page(tmp_path, Workload(requests=10))
    page.exporter.started()
    assert page.scrape()["requests_total ok"] == 0
    for number, seconds in enumerate([0.0004, 0.0005, 0.004, 61.0]):
        log.write_late(number, 1.0, seconds, 7, 200, 0)
    log.write_late(4, 1.0, 0.001, 7, 503, log.error_code("status-5xx", "status 503"))
    log.write_late(5, 1.0, 0.001, 7, 0, log.error_code("other:TypeError", "a mistake"))
    found = page.scrape()
    outcomes = {name.split()[1]: value for name, value in found.items() if name.startswith("requests_total")}
    assert outcomes == {"ok": 4, "status-5xx": 1, "other": 1}
    assert found["request_seconds_count"] == 6
    assert found["request_seconds_sum"] == pytest.approx(61.0069)
    for bound, count in {"0.0005": 2, "0.003": 2, "0.005": 3, "60.0": 3, "+Inf": 6}.items():
        assert found[f"request_seconds_bucket {bound}"] == count


def test_a_trial_runs_from_its_beginning_to_its_end(tmp_path, log):
    """Before it no time is shown; after it nothing is looked at any more, and its own figures are shown."""
    page = Page(tmp_path, Workload(requests=10))
    before = page.scrape()
    assert before["trial_running 1"] == 0
    assert "trial_started_timestamp_seconds" not in before
    log.connected(3)
    page.exporter.started()
    log.connected(2)
    log.write_late(0, 1.0, 0.5, 7, 200, 0)
    during = page.scrape()
    assert (during["trial_running 1"], during["requests_total ok"]) == (1, 1)
    assert during["connections_opened_total"] == 2
    assert 0 < during["requests_in_flight"] <= 4
    log.write_late(1, 1.0, 0.5, 7, 200, 0)
    page.exporter.ended()
    log.write_late(2, 1.0, 0.5, 7, 200, 0)
    after = page.scrape()
    assert (after["trial_running 1"], after["requests_total ok"], after["requests_in_flight"]) == (0, 2, 0)
    assert after["trial_ended_timestamp_seconds"] >= after["trial_started_timestamp_seconds"] > 0
    page.exporter.settle(a_trial(cpu_seconds=1.25, connections_opened=9))
    settled = page.scrape()
    assert (settled["cpu_seconds_total"], settled["connections_opened_total"]) == (1.25, 9)


def test_an_open_load_is_compared_with_its_schedule(tmp_path, log):
    """All requests are due, 4 may be in flight, and 3 have ended: one in time, one late and one dropped."""
    page = Page(tmp_path, Workload(rate=10, requests=10))
    page.exporter.started()
    assert page.scrape()["planned_requests_total"] == 0
    began = time.monotonic() - 60
    begin_schedule(tmp_path, began)
    log.write_late(0, began, 0.004, 7, 200, 0)
    log.write_late(2, began + 0.5, 0.004, 7, 200, 0)
    log.write_late(3, began + 9.0, 0.0, 0, 0, log.error_code("dropped", "too late"))
    found = page.scrape()
    assert (found["planned_requests_total"], found["requests_total dropped"], found["backlog_requests"]) == (10, 1, 3)
    assert (found["lateness_seconds_bucket 0.0005"], found["lateness_seconds_bucket 0.5"]) == (1, 2)
    assert (found["lateness_seconds_bucket 60.0"], found["lateness_seconds_bucket +Inf"]) == (2, 3)
    page.exporter.ended()
    assert page.scrape()["backlog_requests"] == 0


def test_the_metrics_of_shards_add_up_to_those_of_their_trial(tmp_path):
    """Each counts its part of the seconds and its own requests' delays; all have one start, by the lab's clock."""
    workload = Workload(requests=5, delay=Delay.parse("uniform:1ms,9ms"), shards=2)
    found, began = [], time.time() - 10.0
    for place in range(2):
        folder = tmp_path / str(place)
        log = SampleLog(folder, 0, 3)
        log.begin()
        page = Page(folder, share_of(workload, place, 4))
        page.exporter.started(began, agreed=2e9)
        for number in range(3 - place):
            log.write_late(number, 1.0, 0.004, 7, 200, 0)
        page.exporter.ended()
        found.append(page.scrape())
        log.close(0)
    assert [one["requests_total ok"] for one in found] == [3, 2]
    assert 10.0 <= sum(one["measured_seconds_total"] for one in found) <= time.time() - began
    assert {one["trial_started_timestamp_seconds"] for one in found} == {2e9}
    delay = delay_of(workload)
    assert sum(one["delay_seconds_total"] for one in found) == pytest.approx(sum(map(delay, range(5))))
