"""The metrics of a trial, read from a sample log that the test writes."""

from __future__ import annotations

import time

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from clientlab.cluster.live_metrics import ARM_LABELS, RunMetrics
from clientlab.trial.sample_log import SampleLog, begin_schedule
from clientlab.workload.values import Delay
from clientlab.workload.workload import Workload, delay_of, make_workload, take_share
from clients.documents import a_planned_trial, a_trial

RUN = "20240506-070809-small-abcd"


class Page:
    """A worker's page with the metrics of one trial."""

    def __init__(self, folder, workload: Workload) -> None:
        self.run = RunMetrics(RUN, "small")
        self.begin(folder, workload)

    def begin(self, folder, workload: Workload, **changes) -> None:
        """Follow another trial, which may be of another round or arm."""
        planned = a_planned_trial().updated(**{"concurrency": 4, **changes})
        self.trial = self.run.begin(planned, workload, workload, folder)

    def scrape(self) -> dict[str, float]:
        """The samples by name, followed by the values of labels that the arm does not
        have.
        """
        text = generate_latest(self.run).decode()
        found = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = dict(sample.labels)
                assert labels["run"] == RUN
                for label in ARM_LABELS:
                    del labels[label]
                name = sample.name.removeprefix("clientlab_")
                found[" ".join([name, *labels.values()])] = sample.value
        return found


@pytest.fixture
def log(tmp_path):
    made = SampleLog(tmp_path, 0, 100)
    made.begin()
    yield made
    made.close(0)


def test_requests_are_counted_by_outcome_and_their_seconds_in_buckets(tmp_path, log):
    """Errors count by their kind, and in the last bucket however fast they were.

    Unlisted kinds count as "other".
    """
    page = Page(tmp_path, make_workload(requests=10))
    page.trial.started()
    assert page.scrape()["requests_total ok"] == 0
    for number, seconds in enumerate([0.0004, 0.0005, 0.004, 61.0]):
        log.write_late(number, 1.0, seconds, 7, 200, 0)
    log.write_late(4, 1.0, 0.001, 7, 503, log.error_code("status-5xx", "status 503"))
    log.write_late(5, 1.0, 0.001, 7, 0, log.error_code("other:TypeError", "a mistake"))
    found = page.scrape()
    outcomes = {name for name in found if name.startswith("requests_total")}
    assert len(outcomes) == 3
    assert found["requests_total ok"] == 4
    assert found["requests_total status-5xx"] == 1
    assert found["requests_total other"] == 1
    assert found["request_seconds_count"] == 6
    assert found["request_seconds_sum"] == pytest.approx(61.0069)
    assert found["request_seconds_bucket 0.0005"] == 2
    assert found["request_seconds_bucket 0.003"] == 2
    assert found["request_seconds_bucket 0.005"] == 3
    assert found["request_seconds_bucket 60.0"] == 3
    assert found["request_seconds_bucket +Inf"] == 6


def test_a_trial_runs_from_its_beginning_to_its_end(tmp_path, log):
    """Later records do not count, and the trial's own figures replace those seen from
    outside.
    """
    page = Page(tmp_path, make_workload(requests=10))
    before = page.scrape()
    assert before["trial_running 1"] == 0
    log.connected(3)
    page.trial.started()
    log.connected(2)
    log.write_late(0, 1.0, 0.5, 7, 200, 0)
    during = page.scrape()
    assert during["trial_running 1"] == 1
    assert during["requests_total ok"] == 1
    assert during["connections_opened_total"] == 2
    assert 0 < during["requests_in_flight"] <= 4
    log.write_late(1, 1.0, 0.5, 7, 200, 0)
    page.trial.ended()
    log.write_late(2, 1.0, 0.5, 7, 200, 0)
    after = page.scrape()
    assert after["trial_running 1"] == 1  # else a short trial would not be seen
    assert after["requests_total ok"] == 2
    assert after["requests_in_flight"] == 0
    page.trial.settle(a_trial(cpu_seconds=1.25, connections_opened=9).measured)
    settled = page.scrape()
    assert settled["trial_running 1"] == 0
    assert settled["cpu_seconds_total"] == 1.25
    assert settled["connections_opened_total"] == 9


def test_counters_go_on_over_the_trials_of_an_arm(tmp_path):
    """Otherwise, rate() would take a trial that ends higher for a continuation."""
    workload = make_workload(requests=10)
    page = Page(tmp_path / "1", workload)

    def measure(name: str, requests: int) -> None:
        log = SampleLog(tmp_path / name, 0, 10)
        log.begin()
        page.trial.started()
        for number in range(requests):
            log.write_late(number, 1.0, 0.004, 7, 200, 0)
        page.trial.ended()
        page.trial.settle(a_trial(cpu_seconds=0.5, connections_opened=1).measured)
        log.close(0)

    measure("1", 2)
    before = page.scrape()
    assert before["requests_total ok"] == 2
    page.begin(tmp_path / "2", workload, round=2)
    assert page.scrape()["requests_total ok"] == 2
    measure("2", 3)
    found = page.scrape()
    assert found["requests_total ok"] == 5
    assert found["request_seconds_count"] == 5
    assert found["cpu_seconds_total"] == 1.0
    assert found["connections_opened_total"] == 2
    assert found["measured_seconds_total"] >= before["measured_seconds_total"] > 0
    assert found["trial_running 2"] == 1
    assert "trial_running 1" not in found


def test_an_open_load_is_compared_with_its_schedule(tmp_path, log):
    """All 10 requests are due, 4 may be in flight, and 3 have ended: one in time, one
    late and one dropped.
    """
    page = Page(tmp_path, make_workload(rate=10, requests=10))
    page.trial.started()
    assert page.scrape()["planned_requests_total"] == 0
    began = time.monotonic() - 60
    begin_schedule(tmp_path, began)
    log.write_late(0, began, 0.004, 7, 200, 0)
    log.write_late(2, began + 0.5, 0.004, 7, 200, 0)
    log.write_late(3, began + 9.0, 0.0, 0, 0, log.error_code("dropped", "too late"))
    found = page.scrape()
    assert found["planned_requests_total"] == 10
    assert found["requests_total dropped"] == 1
    assert found["backlog_requests"] == 3
    assert found["lateness_seconds_bucket 0.0005"] == 1
    assert found["lateness_seconds_bucket 0.5"] == 2
    assert found["lateness_seconds_bucket 60.0"] == 2
    assert found["lateness_seconds_bucket +Inf"] == 3
    page.trial.ended()
    assert page.scrape()["backlog_requests"] == 0


def test_the_metrics_of_shards_add_up_to_those_of_their_trial(tmp_path):
    """Each counts its part of the seconds and the delays of its own requests.

    All show one start.
    """
    workload = make_workload(requests=5, delay=Delay.parse("uniform:1ms,9ms"), shards=2)
    found = []
    began = time.time() - 10.0
    for place in range(2):
        folder = tmp_path / str(place)
        page = Page(folder, take_share(workload, place, 4))
        log = SampleLog(folder, 0, 3)
        log.begin()
        page.trial.started(began)
        for number in range(3 - place):
            log.write_late(number, 1.0, 0.004, 7, 200, 0)
        page.trial.ended()
        found.append(page.scrape())
        log.close(0)
    first, second = found
    total = {name: first[name] + second[name] for name in first}
    assert total["requests_total ok"] == 5
    assert 10.0 <= total["measured_seconds_total"] <= time.time() - began
    delays = sum(map(delay_of(workload), range(5)))
    assert total["delay_seconds_total"] == pytest.approx(delays)
