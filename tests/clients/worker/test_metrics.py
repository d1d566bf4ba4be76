"""A worker's metrics over HTTP: with a job, whose part the test plays over a real connection, and without."""

from __future__ import annotations

import concurrent.futures
import contextlib
import http.client
import os
import socket
import threading
import time
from multiprocessing.connection import Pipe

import pytest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from clientlab.worker.channel import JobChannel, JobInput, JobMetrics
from clientlab.worker.lab_client import LabClient
from clientlab.worker.metrics_server import MetricsServer
from running import eventually


class Requests:
    """A job's collector: counts the requests of its trial."""

    def __init__(self) -> None:
        self.count = 0
        self.free = threading.Event()
        self.free.set()

    def collect(self):
        self.free.wait()
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
        self.ours = ours
        self.channel.begin(self.requests)
        self.metrics.attach(ours)
        self.descriptor = theirs.fileno()

    def end_job(self) -> None:
        """As the kernel does when the job's process ends."""
        with socket.socket(fileno=os.dup(self.descriptor)) as end:
            end.shutdown(socket.SHUT_RDWR)

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


def test_without_a_job_the_worker_waits(worker):
    """Its health check answers, and there is nothing else."""
    assert worker.scrape() == {"clientlab_worker_waiting": 1}
    assert worker.get("/healthz") == (200, "ok\n")
    assert worker.get("/other")[0] == 404


def test_a_request_that_breaks_its_page_ends_no_other(worker):
    """The thread of all pages lives on."""
    with socket.create_connection(("127.0.0.1", worker.server.port), timeout=5) as client:
        client.sendall(b"GET //metrics HTTP/1.0\r\nAccept: text/plain;version=x\r\n\r\n")
        client.recv(65536)
    assert worker.get("/healthz") == (200, "ok\n")


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


def test_the_process_of_a_job_does_the_next_one(worker):
    """It takes an input for each, and the metrics are those of the present one."""
    worker.start_job()
    worker.channel.end(0)
    assert worker.metrics.wait_for_end() == 0
    given = JobInput({"order": 2}, "a" * 16, LabClient("http://127.0.0.1:9", ""), "/nowhere")
    worker.ours.send(given)
    assert next(worker.channel.inputs()).assignment == {"order": 2}
    second = Requests()
    second.count = 3
    worker.channel.begin(second)
    worker.metrics.attach(worker.ours)
    assert worker.scrape() == {"requests_total": 3}
    worker.channel.end(2)
    assert worker.metrics.wait_for_end() == 2


def test_scrapes_while_a_job_ends_take_nothing_from_its_end(worker):
    """The exit code arrives once, whoever reads it, and no scrape waits for an answer that does not come."""
    for number in range(30):
        ours, theirs = Pipe()
        channel, collector = JobChannel(theirs), Requests()
        collector.count = number
        channel.begin(collector)
        worker.metrics.attach(ours)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            scrapes = [pool.submit(worker.scrape) for _ in range(2)]
            channel.end(number)
            assert worker.metrics.wait_for_end() == number
            assert all(one.result(5) == {"requests_total": number} for one in scrapes)


def test_a_job_that_was_killed_leaves_the_values_of_the_last_scrape(worker):
    """After a job was killed, metrics keep the values of the last scrape."""
    worker.start_job()
    worker.requests.count = 5
    worker.scrape()
    worker.end_job()
    assert worker.metrics.wait_for_end() is None
    assert worker.scrape() == {"requests_total": 5}


@pytest.mark.parametrize("sends", [b"GET /metrics HTTP/1.0\r\n", b"G"])
def test_a_slow_client_is_cut_off_whatever_it_sends(sends):
    """One byte now and then would hold the only thread for ever, and Prometheus would lose the trial's last values."""
    server = MetricsServer("127.0.0.1", 0, JobMetrics(), patience=0.2)
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.settimeout(0.02)
        slow.sendall(sends)
        until = time.monotonic() + 5
        while time.monotonic() < until:
            with contextlib.suppress(TimeoutError):
                if slow.recv(1) == b"":
                    break
            slow.sendall(b"x")
        else:
            pytest.fail("the connection is still open")


def test_many_silent_clients_keep_nobody_from_being_answered(worker):
    """Each would have held the only thread for two seconds."""
    with contextlib.ExitStack() as stack:
        for sends in [b"", b"GET /metrics HTTP/1.0\r\n", b"G"] * 100:
            silent = stack.enter_context(socket.create_connection(("127.0.0.1", worker.server.port)))
            silent.sendall(sends)
        since = time.monotonic()
        assert worker.get("/healthz") == (200, "ok\n")
        assert worker.scrape() == {"clientlab_worker_waiting": 1}
        assert worker.server.wait_for_scrape(since, 10)


def test_a_job_that_is_frozen_leaves_the_health_check_answered(worker):
    """The worker is well; scrapes wait for the job."""
    worker.start_job()
    worker.requests.free.clear()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        scrape = pool.submit(worker.scrape)
        eventually(lambda: worker.server.scrapes == 1, "the scrape has begun")
        assert worker.get("/healthz") == (200, "ok\n")
        worker.requests.free.set()
        assert scrape.result(10) == {"requests_total": 0}


def test_a_collector_that_fails_costs_its_scrape_only(worker, capfd):
    """The reason is in the log, and the next scrape is answered."""
    worker.start_job()
    worker.metrics.collect, collect = None, worker.metrics.collect
    with pytest.raises(http.client.HTTPException):
        worker.scrape()
    assert "TypeError" in capfd.readouterr().err
    worker.metrics.collect = collect
    assert worker.scrape() == {"requests_total": 0}


def test_a_reader_that_takes_nothing_keeps_nobody_from_being_scraped():
    """An answer of megabytes waits for its client, and no thread waits with it."""
    server = MetricsServer("127.0.0.1", 0, Large(), patience=0.5)
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        eventually(lambda: server.scrapes == 1, "the scrape has begun")
        since = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
        with contextlib.closing(connection):
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
        assert not server.wait_for_scrape(since - 1, 1)


class Large:
    """A collector of some megabytes."""

    def collect(self):
        family = CounterMetricFamily("requests", "Requests.", labels=["name"])
        for number in range(20_000):
            family.add_metric([str(number) * 100], number)
        return [family]


def test_a_scrape_waits_for_a_busy_job(worker):
    """Old values would look like new ones; Prometheus gives up after a second, and tries again."""
    worker.start_job()
    worker.requests.free.clear()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        scrape = pool.submit(worker.scrape)
        assert not concurrent.futures.wait([scrape], 0.1).done
        worker.requests.count = 5
        worker.requests.free.set()
        assert scrape.result(10) == {"requests_total": 5}


def test_the_worker_waits_for_a_scrape_that_began_after_a_moment(worker):
    """One before it does not count."""
    worker.scrape()
    since = time.monotonic()
    assert not worker.server.wait_for_scrape(since, 0.01)
    thread = threading.Thread(target=worker.scrape)
    thread.start()
    assert worker.server.wait_for_scrape(since, 10)
    thread.join()


def test_a_scrape_whose_reader_has_gone_does_not_count(worker):
    """Prometheus closes a scrape after a second: the values were sent, and nobody has them."""
    worker.start_job()
    worker.requests.free.clear()
    since = time.monotonic()
    with socket.create_connection(("127.0.0.1", worker.server.port)) as gone:
        gone.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        eventually(lambda: worker.server.scrapes == 1, "the scrape has begun")
    worker.requests.free.set()
    assert not worker.server.wait_for_scrape(since, 0.2)
    worker.scrape()
    assert worker.server.wait_for_scrape(since, 0)
