"""The experiments `reuse` and `distance`: their arithmetic, their length, and the tables of their runs."""

from __future__ import annotations

import pytest

from clientlab.experiments.file import bundled, read_plan
from clientlab.results.plan import Arm
from clientlab.running.due import mean_delay, seconds_of
from clientlab.workload.link import Link
from clientlab.workload.workload import Workload
from clients.documents import a_run, a_trial
from findings import distance, reuse

PLANS = {name: read_plan(bundled()[name]) for name in ("reuse", "distance")}
HANDSHAKE = {"proxy": 1, "proxy-tls": 2}
"""Round trips before the first request on a new connection: TCP's, and that of TLS 1.3."""


@pytest.mark.parametrize("name", PLANS)
def test_a_run_takes_no_more_than_a_quarter_of_an_hour(name):
    """By the lab's own estimate, each experiment takes at most 15 minutes."""
    assert seconds_of(PLANS[name]) <= 15 * 60


def computed(arm: Arm) -> float:
    """Seconds of a request of an arm of `reuse`: the delay, and the round trips of request and new connection."""
    assert arm.link
    entry = (arm.label or arm.name).partition("[")[0]
    round_trips = 1 + (HANDSHAKE[arm.route] if entry.endswith(reuse.NEW) else 0)
    return mean_delay(PLANS["reuse"].workloads[arm.workload]) + round_trips * arm.link.rtt


@pytest.mark.parametrize("claim", PLANS["reuse"].claims, ids=lambda claim: claim.name)
def test_the_bands_of_reuse_hold_what_arithmetic_gives(claim):
    """CPU time comes on top of it: no band ends at less than 2 % above."""
    arms = {arm.name: arm for arm in PLANS["reuse"].arms}
    ratio = computed(arms[claim.b]) / computed(arms[claim.a])
    low, high = claim.band
    assert low <= ratio <= high / 1.02


@pytest.mark.parametrize(
    ("curve", "share", "rtt"),
    [
        ({0.0: 0.05, 0.01: 0.15, 0.02: 0.4}, 0.1, 0.005),
        ({0.02: 0.4, 0.0: 0.05, 0.01: 0.2}, 0.3, 0.015),
        ({0.0: 0.2, 0.01: 0.3}, 0.1, 0.0),
        ({0.0: 0.0, 0.15: 0.49}, 0.5, None),
        ({0.0: 0.52, 0.01: 0.45, 0.02: 0.55}, 0.5, 0.015),
        ({0.0: 0.6, 0.01: 0.4}, 0.5, None),
        ({}, 0.1, None),
    ],
)
def test_the_round_trip_that_saves_a_share_is_between_measured_ones(curve, share, rtt):
    """Linear between two of them, in any order; the first if all save as much; None if the longest saves less."""
    assert reuse.crossing(curve, share) == (None if rtt is None else pytest.approx(rtt))


def a_trial_behind(link: Link, arm: str, strategy: str, number: int, wall: float, **changes):
    """A trial of an arm behind a link."""
    return a_trial(strategy, number, wall, arm=arm, link=link, **changes)


def test_the_table_of_reuse_has_a_line_for_each_pair():
    """Shares by round trip from the ratios by round, the round trips of 10 % and 50 %; a single arm has no line."""
    walls = {0.0: (1.0, 1.0), 0.02: (1.2, 1.0), 0.1: (3.0, 1.0)}
    trials, arms = [], []
    for rtt, pair in walls.items():
        for end, strategy, wall in zip(("new", "kept"), ("requests", "requests-session"), pair, strict=True):
            link, label = Link(rtt), f"requests-{end}[rtt={rtt * 1000:g}ms]"
            place = {"upstream": "aiohttp", "route": "proxy", "workload": "workload", "link": link}
            arms.append(Arm(name=label, label=label, strategy=strategy, **place))
            trials += [
                a_trial_behind(link, label, strategy, number, wall * (1 + number / 50), route="proxy")
                for number in (1, 2, 3)
            ]
    lone = Arm(name="h2-kept", strategy="h2", upstream="aiohttp", route="proxy", workload="workload", link=Link(0.0))
    run = a_run(*trials, arms=[*arms, lone])
    shares = ("0 % (0 to 0)", "17 % (17 to 17)", "67 % (67 to 67)")
    assert reuse.saved_table(run).splitlines() == [
        "| client | route | 0 ms | 20 ms | 100 ms | 10 % from | 50 % from |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
        f"| requests | proxy | {' | '.join(shares)} | 12 ms (12 ms to 12 ms) | 73.3 ms (73.3 ms to 73.3 ms) |",
    ]
    assert reuse.answer(run, "proxy") == (
        "The server takes 0 s. "
        "A kept connection saves 10 % from a round trip of 12 ms (12 ms to 12 ms) on, with every client. "
        "A kept connection saves 50 % from a round trip of 73.3 ms (73.3 ms to 73.3 ms) on, with every client."
    )
    assert "From which round trip on a client saves 10 % is not known" in reuse.answer(run, "proxy-tls")


def test_a_round_trip_is_stated_only_with_both_ends_of_its_interval():
    """It lies between the crossings of the upper and of the lower ends; noise that never crosses states nothing."""
    steps = {0.0: (0.0, -0.1, 0.1), 0.1: (0.4, 0.3, 0.5), 0.2: (0.6, 0.5, 0.7)}
    saving = {rtt: reuse.Saved(*shares) for rtt, shares in steps.items()}
    found = reuse.threshold(saving, 0.45)
    assert (found.value, found.low, found.high) == pytest.approx((0.125, 0.0875, 0.175))
    assert reuse.threshold(saving, 0.55) is None


def test_the_table_of_distance_shows_where_the_order_changes():
    """The fastest at each place, those that cannot be told from it, and the ratios of the slower ones."""
    walls = {0.001: {"pycurl": 1.0, "requests": 3.0}, 0.08: {"pycurl": 2.0, "requests": 2.0}}
    trials, arms = [], []
    for rtt, by_strategy in walls.items():
        link = Link(rtt)
        for strategy, wall in by_strategy.items():
            name = f"{strategy}[rtt={rtt * 1000:g}ms]"
            place = {"upstream": "aiohttp", "route": "direct", "workload": "workload", "link": link}
            arms.append(Arm(name=name, strategy=strategy, **place))
            trials += [
                a_trial_behind(link, name, strategy, number, wall * (1 + number / 100 * len(strategy) / 6))
                for number in (1, 2, 3)
            ]
    found = distance.order_table(a_run(*trials, arms=arms, workloads={"workload": Workload(requests=1000)}))
    near, far = found.splitlines()[2:]
    assert near.startswith("| 1 ms | 1 | pycurl, ")
    assert near.endswith(" | – | requests 3.02 |")
    assert far.startswith("| 80 ms | 1 | pycurl, ")
    assert " | requests | – |" in far
