"""Faults are listed twice, in the lab and in the upstreams, which never import each other. Both agree."""

from __future__ import annotations

import pytest

from clientlab.workload import faults as lab
from clientlab.workload.fault_kinds import KINDS
from mockupstream import faults as upstream

TEXTS = [
    "status", "status=503", "status=404@2s", "status=599@1m", "reset", "reset-headers", "reset-body", "empty",
    "truncated", "bad-chunk", "slow-headers", "slow-headers=200ms", "bytewise", "bytewise=5us", "stall", "stall=2s",
    "stall=0.5", "stall-body", "stall-body=1m", "close", "idle-close", "idle-close=0ms",
]  # fmt: skip
REFUSED = [
    "", "nope", "Reset", "reset=1s", "reset=", "status=", "status=399", "status=600", "status=503@", "status=503@1.5s",
    "status=5xx", "stall=", "stall=soon", "stall=-1s", "close=1s", "reset ",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_a_fault_lasts_as_long_in_both(text):
    """The lab sends the text as it was written, and the upstream reads it."""
    fault = lab.Faults.parse(f"{text}:10%").each[0]
    read = upstream.parse(fault.text)
    assert (fault.kind.name, fault.seconds) == (read.kind, read.seconds)


@pytest.mark.parametrize("text", REFUSED)
def test_both_refuse_the_same(text):
    """Each with a reason."""
    with pytest.raises(ValueError, match=r"\w{3}"):
        lab.Faults.parse(f"{text}:10%")
    with pytest.raises(ValueError, match=r"\w{3}"):
        upstream.parse(text)


def test_both_have_the_same_kinds():
    """Those of the upstream, in one order, with the same need of a body."""
    made = {name: kind.needs_body for name, kind in KINDS.items() if kind.maker == "upstream"}
    assert list(made.items()) == [(name, kind.needs_body) for name, kind in upstream.KINDS.items()]
