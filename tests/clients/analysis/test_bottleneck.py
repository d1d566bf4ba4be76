"""The verdict: what limited a trial, and whether the backlog of an open load grew."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.bottleneck import describe_growth, find_bottleneck
from clientlab.analysis.request_figures import slice_load
from clientlab.results.trial import Shares, Slice
from clients.documents import an_open_trial, with_changes

DELAYED = Shares(
    client=0.2, upstream=0.1, latency=0.7 / 32, chain=1.0 / 32, waiting=0.97
)
"""Delays that take the wall time if they come one after the other."""


@pytest.mark.parametrize(
    ("shares", "bound"),
    [
        # the part that was saturated most, by the CPU time of the cores that it can
        # use, or the delays
        (Shares(client=0.7), "client-bound"),
        (Shares(client=0.69), "mixed"),
        (Shares(client=0.3, proxy=0.8, upstream=0.2), "proxy-bound"),
        (Shares(client=0.1, latency=0.5), "latency-bound"),
        (Shares(client=0.1, latency=0.49), "mixed"),
        # a queue where no part is saturated; a saturated CPU explains its own
        (
            Shares(client=0.1, latency=0.12, upstream_threads=1.0, waiting=0.88),
            "upstream-threads",
        ),
        (Shares(client=0.1, streams=0.75), "client-streams"),
        # slots that are taken for most of a trial outrank the delays of their requests
        (Shares(client=0.2, latency=0.62, connections=0.98), "client-connections"),
        (Shares(client=0.3, latency=0.66, upstream_threads=0.8), "latency-bound"),
        (
            Shares(client=0.2, upstream=0.75, latency=0.78, upstream_threads=0.99),
            "upstream-threads",
        ),
        (Shares(client=0.8, latency=0.78, upstream_threads=0.99), "client-bound"),
        # requests that the client holds back do not wait for delays
        (Shares(client=0.1, latency=0.6, waiting=0.6), "mixed"),
        # the start of a pool, such as 100 processes that were forked one after the
        # other
        (Shares(client=0.3, startup=0.6, latency=0.55), "start-up"),
        # the link, by its process, by its bandwidth, or by its round trips, which count
        # as delays
        (Shares(client=0.2, link=0.9, latency=0.6), "link-bound"),
        (Shares(client=0.2, link=0.3, bandwidth=0.95, latency=0.6), "bandwidth-bound"),
        (Shares(client=0.2, link=0.3, bandwidth=0.2, latency=0.9), "latency-bound"),
        # a full machine, if no part reached its own limit
        (Shares(client=0.35, proxy=0.47, upstream=0.25, machine=0.89), "machine"),
        # a server without counters: it or the network
        (Shares(client=0.2, outside=0.97, machine=0.7), "outside"),
        # a part that is half busy may have a queue that explains the rest
        (Shares(client=0.6, upstream=0.2, waiting=0.9, unaccounted=0.88), "mixed"),
    ],
)
def test_what_was_full_held_the_trial_back(shares, bound):
    assert find_bottleneck(shares, 32) == bound


@pytest.mark.parametrize(
    ("shares", "concurrency", "bound"),
    [
        (
            Shares(client=0.49, upstream=0.4, proxy=0.11, chain=1.0, machine=0.5),
            1,
            "chain",
        ),
        (Shares(client=0.4, upstream=0.6, chain=0.8, machine=0.7), 2, "chain"),
        (Shares(client=0.4, upstream=0.6, chain=0.1), 10, "mixed"),
        (
            Shares(client=0.02, upstream=0.02, chain=0.05, unaccounted=0.95),
            1,
            "unaccounted",
        ),
        (
            Shares(client=0.2, upstream=0.2, latency=0.2, chain=0.55, unaccounted=0.45),
            1,
            "chain",
        ),
        (Shares(client=0.49, outside=0.51), 1, "outside"),
    ],
)
def test_requests_that_pass_through_all_parts_in_turn_are_a_chain(
    shares, concurrency, bound
):
    assert find_bottleneck(shares, concurrency) == bound


@pytest.mark.parametrize(
    ("shares", "threads", "bound"),
    [
        (
            Shares(client=0.5, upstream=0.45, chain=0.95 / 32, waiting=0.99, locks=0.9),
            True,
            "client-lock",
        ),
        (
            Shares(client=0.5, upstream=0.45, chain=0.95 / 32, waiting=0.99, locks=0.9),
            False,
            "mixed",
        ),
        (DELAYED.updated(in_turn=0.99), True, "client-lock"),
        (
            DELAYED.updated(in_turn=0.99, machine=1.0),
            False,
            "client-lock",
        ),
        (
            Shares(client=0.16, upstream=0.3, chain=2.5 / 32, waiting=0.9, locks=0.8),
            True,
            "client-lock",
        ),
        (
            Shares(client=0.5, upstream=0.6, chain=1.5 / 32, waiting=0.9, locks=0.9),
            True,
            "mixed",
        ),
    ],
)
def test_requests_that_no_server_sees_wait_for_a_lock_in_the_client(
    shares, threads, bound
):
    """One after the other, or in threads while no server is busy.

    Event loops may work in turn without a lock.
    """
    assert find_bottleneck(shares, 32, threads=threads) == bound


STALLED = Shares(
    client=0.1, upstream=0.1, chain=0.4 / 8, waiting=0.98, unaccounted=0.96
)
"""Eight threads whose requests stall for 40 ms."""


@pytest.mark.parametrize(
    "shares",
    [
        STALLED,
        STALLED.updated(locks=0.4),
        STALLED.updated(
            chain=0.95 / 8
        ),  # their work adds up to that of one request at a time
        DELAYED.updated(
            unaccounted=0.96, in_turn=0.4
        ),  # delays add up to the wall time by chance
    ],
)
def test_without_evidence_of_a_lock_the_latency_is_unaccounted(shares):
    assert (
        find_bottleneck(shares, 32 if shares.in_turn else 8, threads=True)
        == "unaccounted"
    )


EDGES = 60


def queue(planned: np.ndarray, served: float, delay: float = 0.0) -> np.ndarray:
    """When each request ends, at a server that does so many per second in their order,
    and then waits that long.
    """
    ends = []
    free = 0.0
    for start in planned:
        free = max(start, free) + 1 / served
        ends.append(free + delay)
    return np.array(ends)


def trial_of(
    planned: np.ndarray,
    ends: np.ndarray,
    *,
    length: float,
    delay: float = 0.0,
    **changes,
):
    wall = max(length, float(ends.max()))
    edges = np.linspace(0.0, wall, EDGES + 1)
    counts = np.histogram(ends, edges)[0].tolist()
    slices = [
        Slice(at=at, requests=count, errors=0)
        for at, count in zip(edges, counts, strict=False)
    ]
    rate = len(planned) / length
    shown = {
        "planned_per_second": rate,
        "achieved_per_second": rate,
        "wall": wall,
        "over_time": slices,
    }
    shown |= {
        "load_over_time": slice_load(planned, edges, delay),
        **changes,
    }
    return an_open_trial("urllib3", 1, **shown)


def growth_of(trial) -> str | None:
    return describe_growth(trial.figures, trial.wall_seconds)


def evenly(rate: float, length: float) -> np.ndarray:
    return np.arange(round(rate * length)) / rate


@pytest.mark.parametrize(
    ("rate", "served", "grown"), [(2000, 1000, "5,0"), (200, 190, "5")]
)
def test_a_queue_that_grows_is_an_overload_however_many_requests_may_be_in_flight(
    rate, served, grown
):
    planned = evenly(rate, 10.0)
    trial = trial_of(planned, queue(planned, served), length=10.0)
    assert f"grew by {grown}" in growth_of(trial)


@pytest.mark.parametrize("rate", [50, 189])
def test_a_server_that_keeps_up_is_not_overloaded(rate):
    planned = evenly(rate, 10.0)
    trial = trial_of(planned, queue(planned, 190), length=10.0)
    assert growth_of(trial) is None


@pytest.mark.parametrize("delay", [0.5, 3.0])
def test_requests_that_only_wait_for_their_delay_are_no_queue(delay):
    """With a delay of half the trial, requests in flight rise during half the trial."""
    planned = evenly(500, 5.0)
    trial = trial_of(planned, planned + delay + 0.001, length=5.0, delay=delay)
    assert growth_of(trial) is None


@pytest.mark.parametrize(("served", "grows"), [(500, True), (1010, False)])
def test_an_overload_at_the_end_of_a_rising_rate_is_found(served, grows):
    planned = np.concatenate([evenly(100, 5.0), 5.0 + evenly(1000, 5.0)])
    trial = trial_of(planned, queue(planned, served), length=10.0)
    assert (growth_of(trial) is not None) == grows


@pytest.mark.parametrize(("slow", "grows"), [(1, False), (600, True)])
def test_stragglers_after_the_schedule_are_no_overload(slow, grows):
    planned = evenly(1000, 1.0)
    ends = planned + 0.01
    ends[-slow:] = np.linspace(59.0, 60.0, slow)
    trial = trial_of(planned, ends, length=1.0)
    load = trial.figures.open_load.updated(in_flight_at_end=slow + 10)
    found = growth_of(with_changes(trial, open_load=load))
    assert (found is not None) == grows
