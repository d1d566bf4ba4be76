"""Counters in shared memory."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING

import pytest

from mockupstream.ledger import CPU, Book
from mockupstream.metrics import UpstreamCollector

if TYPE_CHECKING:
    from collections.abc import Mapping


def samples(book: Book) -> Mapping[str, float]:
    """Return the unlabelled samples that a scrape would tell."""
    families = UpstreamCollector(book, "flask", "gunicorn").collect()
    return {sample.name: sample.value for family in families for sample in family.samples if not sample.labels}


def work(book: Book, number: int) -> None:
    """Answer one request as a worker would, and leave another in flight."""
    ledger = book.open(number)
    ledger.connection()
    ledger.begin()
    ledger.ready(0, 200, 0.02, 0.01, 3, 5, 7)
    ledger.end()
    ledger.begin()


@pytest.mark.real
def test_all_workers_are_added_up() -> None:
    """Totals are those of every worker, and those of an ended one stay; gauges tell of the living alone."""
    book = Book()
    work(book, 0)
    child = multiprocessing.get_context("fork").Process(target=work, args=(book, 1))
    child.start()
    child.join()
    both = samples(book)
    assert (both["mockupstream_workers"], both["mockupstream_requests_in_flight"]) == (2, 2)
    assert both["mockupstream_workers_busy"] == 2
    book.close(1)
    after = samples(book)
    assert (after["mockupstream_workers"], after["mockupstream_requests_in_flight"]) == (1, 1)
    assert after["mockupstream_workers_busy"] == 1
    assert after["mockupstream_response_body_bytes_total"] == 10
    assert after["mockupstream_request_body_bytes_total"] == 6
    assert after["mockupstream_connections_accepted_total"] == 2
    assert after["mockupstream_asked_delay_seconds_total"] == pytest.approx(0.02)
    assert after["mockupstream_hold_seconds_count"] == 2
    assert after["mockupstream_hold_seconds_sum"] == pytest.approx(0.04)
    assert book.pages()[1].floats[CPU] > 0


def test_workers_hold_as_many_requests_as_they_have_threads() -> None:
    """All workers together; without a number of threads nothing is told, because nothing limits them."""
    book = Book()
    work(book, 0)
    work(book, 1)
    limited = UpstreamCollector(book, "flask", "gunicorn", threads=4).collect()
    found = {sample.name: sample.value for family in limited for sample in family.samples if not sample.labels}
    assert found["mockupstream_request_slots"] == 8
    assert "mockupstream_request_slots" not in samples(book)
