"""A worker's metrics over HTTP: with a job, whose part the test plays over a real connection, and without."""

from __future__ import annotations

import contextlib
import http.client
from multiprocessing.connection import Pipe

import pytest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from clientlab.worker.channel import JobChannel, JobMetrics
from clientlab.worker.metrics_server import MetricsServer


class Requests:
    """A job's collector: counts the requests of its trial."""

    def __init__(self) -> None:
        self.count = 0

    def collect(self):
        family = CounterMetricFamily("requests", "Requests.", value=self.count)
        return [family]


class Worker:
    """An agent's metrics, and a job that it may have."""

    def __init__(self) -> None:
        self.metrics = JobMetrics()
        self.server = MetricsServer("127.0.0.1", 0, self.metrics)
        self.requests = Requests()

    def start_job(self) -> None:
        ours, theirs = Pipe()
        self.channel = JobChannel(theirs)
        self.channel.begin(self.requests)
        self.metrics.attach(ours)

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a page."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=5)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def scrape(self) -> dict[str, float]:
        """The values as Prometheus reads them."""
        status, text = self.get("/metrics")
        families = text_string_to_metric_families(text) if status == 200 else []
        return {sample.name: sample.value for family in families for sample in family.samples}


@pytest.fixture
def worker():
    return Worker()


@pytest.mark.real
def test_a_scrape_gets_the_values_of_its_moment_and_afterwards_the_last_ones(worker):
    """The last ones stay until they are cleared, though the job's process has ended."""
    worker.start_job()
    worker.requests.count = 5
    assert worker.scrape() == {"requests_total": 5}
    worker.requests.count = 7
    worker.channel.end(0)
    assert worker.metrics.wait_for_end() == 0
    assert worker.scrape() == {"requests_total": 7}
    worker.metrics.clear()
    assert worker.scrape() == {"clientlab_worker_waiting": 1}
