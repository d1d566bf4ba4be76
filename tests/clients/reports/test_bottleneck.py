"""The bottleneck in a report: its name, and the shares that led to it."""

from __future__ import annotations

import pytest

from clientlab.reports.rows import bottleneck_name, bottleneck_shares, shares_of
from clients.documents import a_trial

SHARES = {"client": 0.49, "upstream": 0.4, "proxy": 0.11, "chain": 1.0}


@pytest.mark.parametrize(
    ("verdict", "shares", "text"),
    [
        ("chain", SHARES, "client 49 %, upstream 40 %, proxy 11 %"),
        ("mixed", {"client": 0.6, "upstream": 0.65, "machine": 0.7}, "upstream 65 %, client 60 %"),
        ("machine", {"client": 0.3, "upstream": 0.2, "machine": 0.996}, "machine 100 %, client 30 %, upstream 20 %"),
        ("bandwidth-bound", {"client": 0.1, "latency": 0.3, "link": 0.2, "bandwidth": 0.96},
         "bandwidth 96 %, delays 30 %, link 20 %, client 10 %"),
        ("upstream-threads", {"client": 0.1, "latency": 0.125, "upstream_threads": 0.99},
         "threads 99 %, delays 12 %, client 10 %"),
        ("client-connections", {"client": 0.1, "connections": 0.97}, "connections 97 %, client 10 %"),
        ("client-lock", {"client": 0.5, "upstream": 0.4, "waiting": 0.98},
         "waiting in the client 98 %, client 50 %, upstream 40 %"),
        ("outside", {"client": 0.2, "outside": 0.97}, "outside 97 %, client 20 %"),
        ("unaccounted", {"client": 0.02, "unaccounted": 0.95}, "unaccounted 95 %, client 2 %"),
        ("start-up", {"client": 0.3, "startup": 0.8}, "start 80 %, client 30 %"),
        ("client-streams", {"client": 0.3, "latency": 0.66, "streams": 0.99},
         "streams 99 %, delays 66 %, client 30 %"),
        ("client-bound", {"client": 0.98, "ceiling": 0.38}, "client 98 %, ceiling 38 %"),
        ("client-bound", {}, "–"),
        (None, {}, "–"),
    ],
)  # fmt: skip
def test_the_share_that_decided_comes_first(verdict, shares, text):
    """Then those of all parts, the busiest first."""
    assert bottleneck_shares(verdict, shares) == text


@pytest.mark.parametrize(
    ("verdict", "name"),
    [("client-bound", "client"), ("client-lock", "client's lock"), ("machine", "machine"), (None, "–")],
)
def test_a_verdict_has_a_plain_name(verdict, name):
    """Each verdict has the plain name that the table shows."""
    assert bottleneck_name(verdict) == name


@pytest.mark.parametrize(
    ("verdict", "machine", "name"),
    [
        ("client-bound", 0.97, "client, full machine"),
        ("client-bound", 0.84, "client"),
        ("machine", 0.97, "machine"),
        ("latency-bound", 0.97, "latency"),
    ],
)
def test_a_client_that_was_full_on_a_full_machine_says_so(verdict, machine, name):
    """On more cores, the client might have done more."""
    assert bottleneck_name(verdict, {"client": 0.9, "machine": machine}) == name


def test_shares_of_an_arm_are_medians_of_the_trials_that_have_them():
    """Unknown is left out, and is not 0."""
    trials = [a_trial(number=1, busy={"client": 0.9, "proxy": 0.2}), a_trial(number=2, busy={"client": 0.7})]
    assert shares_of(trials) == {"client": pytest.approx(0.8), "proxy": 0.2}
