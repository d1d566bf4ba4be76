"""Metrics of an upstream with several workers, which count in shared memory."""

from __future__ import annotations

import contextlib
import multiprocessing
import socket

import pytest

from mockupstream.metrics import CPU, MOST_WORKERS, Book, UpstreamCollector
from running import Server, ask, eventually

ACCEPTED = "mockupstream_connections_accepted_total"
IN_FLIGHT = "mockupstream_requests_in_flight"
HELD = "mockupstream_hold_seconds_count"


def samples(book: Book, threads: int | None = None) -> dict[str, float]:
    """Return the unlabelled samples of a scrape."""
    families = UpstreamCollector(book, "flask", "gunicorn", threads).collect()
    return {
        sample.name: sample.value
        for family in families
        for sample in family.samples
        if not sample.labels
    }


def work(book: Book, number: int) -> None:
    """Answer one request as a worker would, and leave another in flight."""
    ledger = book.open(number)
    ledger.connection()
    ledger.begin()
    ledger.ready(0, 200, 0.02, 0.01, 3, 5, 7)
    ledger.end()
    ledger.begin()


def changes(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    """Return the samples that changed, with their differences."""
    return {
        name: value - before.get(name, 0)
        for name, value in after.items()
        if value != before.get(name, 0)
    }


@pytest.mark.real
def test_totals_include_ended_workers_and_gauges_do_not() -> None:
    book = Book()
    work(book, 0)
    child = multiprocessing.get_context("fork").Process(target=work, args=(book, 1))
    child.start()
    child.join()
    gauges = ("mockupstream_workers", IN_FLIGHT, "mockupstream_workers_busy")
    both = samples(book)
    assert [both[name] for name in gauges] == [2, 2, 2]
    book.close(1)
    after = samples(book)
    assert [after[name] for name in gauges] == [1, 1, 1]
    assert after["mockupstream_response_body_bytes_total"] == 10
    assert after["mockupstream_request_body_bytes_total"] == 6
    assert after[ACCEPTED] == after[HELD] == 2
    assert after["mockupstream_asked_delay_seconds_total"] == pytest.approx(0.02)
    assert after["mockupstream_hold_seconds_sum"] == pytest.approx(0.04)
    assert book.pages()[1].floats[CPU] > 0


def test_a_worker_that_replaces_another_goes_on_counting_in_its_page() -> None:
    """More workers can start than there are pages, and each page is one worker of the
    server.

    Without threads, there is no limit of request slots and no sample.
    """
    book = Book()
    assert [book.reserve(), book.reserve()] == [0, 1]
    work(book, 1)
    for _ in range(MOST_WORKERS):
        book.close(0)
        assert book.reserve() == 0
        work(book, 0)
    found = samples(book, threads=4)
    assert (
        found["mockupstream_workers"],
        found["mockupstream_request_slots"],
        found[IN_FLIGHT],
    ) == (2, 8, 2)
    assert found[ACCEPTED] == found[HELD] == MOST_WORKERS + 1
    book.close(0)
    found = samples(book, threads=4)
    assert (
        found["mockupstream_workers"],
        found["mockupstream_request_slots"],
        found[IN_FLIGHT],
    ) == (1, 8, 1)
    assert "mockupstream_request_slots" not in samples(book)


@pytest.mark.real
def test_a_failed_request_is_counted_with_its_bytes_and_times(upstream: Server) -> None:
    before = upstream.metrics()
    body = upstream.ask("/?status=503&delay=30ms", "POST", b"12345").body
    change = changes(before, upstream.metrics())
    assert change['mockupstream_requests_total{route="/",status="503"}'] == 1
    assert change[ACCEPTED] == change[HELD] == 1
    assert change["mockupstream_request_body_bytes_total"] == 5
    assert change["mockupstream_response_body_bytes_total"] == len(body)
    assert change["mockupstream_asked_delay_seconds_total"] == pytest.approx(0.03)
    assert change["mockupstream_hold_seconds_sum"] >= 0.03
    assert 'mockupstream_hold_seconds_bucket{le="0.025"}' not in change
    assert change['mockupstream_hold_seconds_bucket{le="60.0"}'] == 1


@pytest.mark.real
def test_each_connection_is_counted_once(upstream: Server) -> None:
    before = upstream.metrics()
    for _ in range(7):
        with contextlib.closing(upstream.connect()) as connection:
            ask(connection, "/healthz")
            for _ in range(3):
                ask(connection, "/")
    change = changes(before, upstream.metrics())
    assert (change[ACCEPTED], change[HELD]) == (7, 7 * 3)


@pytest.mark.real
def test_requests_whose_clients_left_do_not_stay_in_flight(upstream: Server) -> None:
    """The clients leave during the delay or during the body."""
    assert upstream.metric(IN_FLIGHT) == 0
    leaving = []
    for path in (b"/?delay=1s", b"/drip?duration=1&numbytes=3", b"/bytes/1000000"):
        connection = socket.create_connection(("127.0.0.1", upstream.port))
        connection.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        leaving.append(connection)
    eventually(lambda: upstream.metric(IN_FLIGHT) >= 2, "two requests are in flight")
    for connection in leaving:
        connection.close()
    eventually(lambda: upstream.metric(IN_FLIGHT) == 0, "nothing is in flight")


@pytest.mark.real
def test_the_counters_of_the_workers_add_up(upstream: Server) -> None:
    for _ in range(20):
        upstream.ask("/")
    found = upstream.metrics()
    for worker, total in (
        ("worker_cpu_seconds_total", "cpu_seconds_total"),
        ("worker_hold_seconds_total", "hold_seconds_sum"),
    ):
        parts = [
            value
            for name, value in found.items()
            if name.startswith(f"mockupstream_{worker}")
        ]
        assert len(parts) == 2
        assert sum(parts) == pytest.approx(found[f"mockupstream_{total}"])
