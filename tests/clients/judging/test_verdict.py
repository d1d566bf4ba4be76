"""The verdict: what limited a trial."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clientlab.judging.verdict import Shares, unaccounted, verdict

DELAYED = Shares(client=0.2, upstream=0.1, latency=0.7 / 32, chain=1.0 / 32, waiting=0.97)
"""Delays that take the wall time if they come one after the other."""


@pytest.mark.parametrize(
    ("shares", "bound"),
    [
        # the part that was saturated most, by the CPU time of the cores that it can use, or the delays
        (Shares(client=0.7), "client-bound"),
        (Shares(client=0.69), "mixed"),
        (Shares(client=0.3, proxy=0.8, upstream=0.2), "proxy-bound"),
        (Shares(client=0.1, latency=0.5), "latency-bound"),
        (Shares(client=0.1, latency=0.49), "mixed"),
        # a queue where no part is saturated; a saturated CPU explains its own
        (Shares(client=0.1, latency=0.12, upstream_threads=1.0, waiting=0.88), "upstream-threads"),
        (Shares(client=0.1, streams=0.75), "client-streams"),
        # slots that are taken for most of a trial outrank the delays of their requests
        (Shares(client=0.2, latency=0.62, connections=0.98), "client-connections"),
        (Shares(client=0.3, latency=0.66, upstream_threads=0.8), "latency-bound"),
        (Shares(client=0.2, upstream=0.75, latency=0.78, upstream_threads=0.99), "upstream-threads"),
        (Shares(client=0.8, latency=0.78, upstream_threads=0.99), "client-bound"),
        # the start of a pool, such as 100 processes that were forked one after the other
        (Shares(client=0.3, startup=0.6, latency=0.55), "start-up"),
        # a full machine, if no part reached its own limit
        (Shares(client=0.35, proxy=0.47, upstream=0.25, machine=0.89), "machine"),
        # a server without counters: it or the network
        (Shares(client=0.2, outside=0.97, machine=0.7), "outside"),
        # a part that is half busy may have a queue that explains the rest
        (Shares(client=0.6, upstream=0.2, waiting=0.9, unaccounted=0.88), "mixed"),
    ],
)
def test_what_was_full_held_the_trial_back(shares, bound):
    assert verdict(shares, 32) == bound


@pytest.mark.parametrize(
    ("shares", "concurrency", "bound"),
    [
        (Shares(client=0.49, upstream=0.4, proxy=0.11, chain=1.0, machine=0.5), 1, "chain"),
        (Shares(client=0.4, upstream=0.6, chain=0.8, machine=0.7), 2, "chain"),
        (Shares(client=0.4, upstream=0.6, chain=0.1), 10, "mixed"),
        (Shares(client=0.02, upstream=0.02, chain=0.05, unaccounted=0.95), 1, "unaccounted"),
        (Shares(client=0.2, upstream=0.2, latency=0.2, chain=0.55, unaccounted=0.45), 1, "chain"),
        (Shares(client=0.49, outside=0.51), 1, "outside"),
    ],
)
def test_requests_that_pass_through_all_parts_in_turn_are_a_chain(shares, concurrency, bound):
    assert verdict(shares, concurrency) == bound


@pytest.mark.parametrize(
    ("shares", "threads", "bound"),
    [
        (Shares(client=0.5, upstream=0.45, chain=0.95 / 32, waiting=0.99, locks=0.9), True, "client-lock"),
        (Shares(client=0.5, upstream=0.45, chain=0.95 / 32, waiting=0.99, locks=0.9), False, "mixed"),
        (replace(DELAYED, in_turn=0.99), True, "client-lock"),
        (replace(DELAYED, in_turn=0.99, machine=1.0), False, "client-lock"),
        (Shares(client=0.16, upstream=0.3, chain=2.5 / 32, waiting=0.9, locks=0.8), True, "client-lock"),
        (Shares(client=0.5, upstream=0.6, chain=1.5 / 32, waiting=0.9, locks=0.9), True, "mixed"),
    ],
)
def test_requests_that_no_server_sees_wait_for_a_lock_in_the_client(shares, threads, bound):
    """One after the other, or in threads while no server is busy. Event loops may work in turn without a lock."""
    assert verdict(shares, 32, threads=threads) == bound


STALLED = Shares(client=0.1, upstream=0.1, chain=0.4 / 8, waiting=0.98, unaccounted=0.96)
"""Eight threads whose requests stall for 40 ms."""


@pytest.mark.parametrize(
    "shares",
    [
        STALLED,
        replace(STALLED, locks=0.4),
        replace(STALLED, chain=0.95 / 8),  # their work adds up to that of one request at a time
        replace(DELAYED, unaccounted=0.96, in_turn=0.4),  # delays add up to the wall time by chance
    ],
)
def test_without_evidence_of_a_lock_the_latency_is_unaccounted(shares):
    """Few threads were seen blocked on a lock, and the ends of their requests show no turn."""
    assert verdict(shares, 32 if shares.in_turn else 8, threads=True) == "unaccounted"


@pytest.mark.parametrize(
    ("measured", "share"),
    [
        ({"chain": 0.05, "waiting": 0.9, "concurrency": 1}, 0.95),
        ({"chain": 1.1, "waiting": 0.9, "concurrency": 1}, 0.0),
        ({"chain": None, "waiting": 0.9, "concurrency": 1}, None),
        ({"chain": 0.05, "waiting": 0.9, "concurrency": 8}, 0.85),
    ],
)
def test_what_is_unaccounted_for_is_the_rest_of_the_requests_time(measured, share):
    """0.4 s of CPU time in 1 s are 5 % of the time of eight requests. A single request waits for nobody."""
    found = unaccounted(cpu_seconds=0.4, wall=1.0, **measured)
    assert found == (None if share is None else pytest.approx(share))
