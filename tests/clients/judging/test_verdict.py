"""The verdict: which part held a trial back."""

from __future__ import annotations

import pytest

from clientlab.judging.verdict import Shares, busy, verdict, waited


@pytest.mark.parametrize(
    ("shares", "wall", "bound"),
    [
        (Shares(client=0.98), 1, "client-bound"),
        (Shares(client=0.7), 1, "client-bound"),
        (Shares(client=0.69), 1, "unclear"),
        (Shares(client=0.0), 1, "unclear"),
        (Shares(client=0.3, upstream=0.9), 1, "upstream-bound"),
        (Shares(client=0.3, proxy=0.8, upstream=0.2), 1, "proxy-bound"),
        (Shares(client=0.8, proxy=0.9, upstream=0.95), 1, "upstream-bound"),
        (Shares(client=0.1, latency=0.5), 1, "latency-bound"),
        (Shares(client=0.1, latency=0.49), 1, "unclear"),
        (Shares(client=0.75, latency=0.99), 1, "latency-bound"),
        (Shares(client=0.4, proxy=0.3, upstream=0.4), 1, "unclear"),
        (Shares(client=0.99), 0.2, "client-bound"),
        (Shares(client=0.99), 0.19, "unclear"),
    ],
)
def test_the_part_that_was_saturated_most_held_the_trial_back(shares, wall, bound):
    """None where none was saturated, or where the trial was too short to tell."""
    assert verdict(shares, wall) == bound


@pytest.mark.parametrize(
    ("spent", "wall", "lanes", "cores", "share"),
    [(1, 1, 1, 2, 1), (1, 1, 2, 2, 0.5), (2, 1, 8, 2, 1), (1, 2, 1, 1, 0.5), (1, 1, 0, 2, 1), (1, 0, 1, 1, 0)],
)
def test_a_part_is_busy_by_the_cores_that_its_processes_can_use(spent, wall, lanes, cores, share):
    """One process can be no busier than one core; many not busier than all."""
    assert busy(spent, wall, lanes, cores) == share


@pytest.mark.parametrize(("delays", "wall", "concurrency", "share"), [(10, 1, 10, 1), (10, 2, 10, 0.5), (1, 0, 1, 0)])
def test_delays_are_shared_out_to_the_requests_in_flight(delays, wall, concurrency, share):
    """Ten seconds of delays with ten in flight take one second."""
    assert waited(delays, wall, concurrency) == share
