"""The short form of `scripts/bench chaos`: one of its strikes."""

from __future__ import annotations

import sys

import pytest
from benchmarks.chaos import played
from benchmarks.chaos.incidents import STRIKES, Incident, Moment


@pytest.mark.real
@pytest.mark.release
@pytest.mark.skipif(sys.platform != "linux", reason="parent-death signals are Linux'")
def test_a_run_that_is_killed_in_its_second_trial_is_resumed_and_leaves_nothing():
    """No finished trial is lost, no process, temporary file, private key, folder or state is left."""
    (strike,) = (one for one in STRIKES if (one.victim, one.number.name) == ("main", "SIGKILL"))
    moment = Moment("share", trial=1, share=0.5, later=0.0)
    report = played(Incident(0, strike, moment, "aiohttp", "proxy-tls", pick=0, pause=0.0))
    assert report.broken == []
