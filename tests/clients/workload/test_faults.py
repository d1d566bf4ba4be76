"""Faults of a workload: their grammar, their shares, and which request has which."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from clientlab.errors import FieldError
from clientlab.workload.fault_kinds import KINDS
from clientlab.workload.faults import Faults
from clientlab.workload.making import requests_of
from clientlab.workload.seeds import in_round
from clientlab.workload.shard_workload import share_of
from clientlab.workload.workload import Workload, check, fault_of, varies

TEXT = "reset:10%,status=503@2s:5%,stall=2s:1%,truncated:0.5%"
BASE = "http://127.0.0.1:8000"


def shares_of(faults: Faults, seed: int, count: int) -> Counter[str]:
    """How often each fault is drawn."""
    drawn = faults.at(seed)
    return Counter(fault.text for k in range(count) if (fault := drawn(k)) is not None)


def test_the_text_of_faults_is_read_as_it_is_written():
    """Whatever the notation of a share."""
    assert str(Faults.parse(TEXT)) == TEXT
    assert Faults.parse("reset:0.1, empty:.05") == Faults.parse("reset:10%,empty:5%")
    assert Faults.parse("none") == Faults()
    assert str(Faults()) == "none"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("reste:10%", r"no fault 'reste'; nearest: reset; there are status, reset"),
        ("reset", r"no share; write reset:10%"),
        ("reset:0%", "not a share"),
        ("reset:101%", "not a share"),
        ("reset:1e1%", "not a share"),
        ("reset:60%,empty:50%", r"add up to 110 %"),
        ("reset:1%,reset:2%", "twice"),
        ("stall=soon:1%", "not a length of time"),
        ("stall=2h:1%", "not a length of time"),
        ("stall=3601s:1%", "at most 3600s"),
        ("status=200:1%", "400 to 599"),
        ("", "no fault ''"),
        ("reset:1%,", "no fault ''"),
    ],
)
def test_a_wrong_text_is_refused_with_what_to_write(text, what):
    """Each with the kinds, or the values, that exist."""
    with pytest.raises(ValueError, match=what):
        Faults.parse(text)


def test_observed_shares_are_the_requested_ones():
    """Within 3 standard deviations of a binomial draw, in each of 100 runs."""
    faults, count = Faults.parse("reset:10%,empty:3%"), 2000
    outside = 0
    for seed in range(100):
        found = shares_of(faults, seed, count)
        for fault in faults.each:
            deviation = (count * fault.share * (1 - fault.share)) ** 0.5
            outside += abs(found[fault.text] - count * fault.share) > 3 * deviation
    assert outside == 0


def test_the_fault_of_a_request_depends_on_seed_and_number_alone():
    """All arms of a round meet the same faults; the next round has others; shards share those of the whole."""
    workload = Workload(faults=Faults.parse(TEXT), requests=500)
    first, again, second = (in_round(workload, 7, number) for number in (1, 1, 2))
    drawn = [[fault_of(one)(k) for k in range(500)] for one in (first, again, second)]
    assert drawn[0] == drawn[1] != drawn[2]
    shares = [fault_of(share_of(replace(first, shards=3), index, 3)) for index in range(3)]
    assert [shares[k % 3](k // 3) for k in range(498)] == drawn[0][:498]


def test_a_warm_up_has_no_faults():
    """Its requests have numbers below 0."""
    drawn = Faults.parse("reset:100%").at(1)
    assert [drawn(-2), drawn(-1)] == [None, None]
    assert drawn(0) is not None


def test_the_fault_stands_in_the_query_of_its_request():
    """Behind what the path has, and the delay; all others are as without faults."""
    faults = Faults.parse("reset:30%,stall=2s:20%")
    for more in ({}, {"path": "/todos/{k}?x=1"}, {"method": "POST", "payload_size": 10, "encode": "each"}):
        workload, plain = Workload(faults=faults, **more), Workload(**more)
        made, without, drawn = requests_of(workload, BASE), requests_of(plain, BASE), faults.at(workload.seed)
        kinds = set()
        for k in range(100):
            url = without(k).url
            fault = drawn(k)
            kinds.add(fault)
            joint = "&" if "?" in url else "?"
            assert made(k).url == (url if fault is None else f"{url}{joint}fault={fault.text}")
            assert (made(k).method, made(k).headers, made(k).body) == (
                without(k).method,
                without(k).headers,
                without(k).body,
            )
        assert kinds == {None, *faults.each}


def test_a_workload_without_faults_is_as_it_was():
    """Its requests are one object, so that no code of faults runs for any of them."""
    for workload in (Workload(), Workload(faults=Faults())):
        assert not varies(workload)
        assert fault_of(workload) is None
        made = requests_of(workload, BASE)
        assert made(0) is made(1)


@pytest.mark.parametrize("fields", [{"method": "HEAD"}, {"path": "/status/204"}, {"path": "/status/304?x=1"}])
def test_a_fault_of_the_body_needs_one(fields):
    """The message names the fault, the request, and the faults that it can have."""
    for kind in KINDS.values():
        if kind.maker != "upstream":
            continue
        workload = Workload(faults=Faults.parse(f"{kind.name}:1%"), **fields)
        if kind.needs_body:
            with pytest.raises(FieldError, match=f"faults: {kind.name}: it shows in a body, and .*others are status"):
                check(workload)
        else:
            check(workload)
