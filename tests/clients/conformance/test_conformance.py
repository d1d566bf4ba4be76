"""Equal budgets: every listed strategy does the same work, as seen by a server that shares no code with the lab."""

from __future__ import annotations

import pytest

from clientlab.conformance import drills_of
from clientlab.strategies import CLIENTS, EXECUTORS, STRATEGIES

CHECKS = [
    pytest.param((name, drill.name, check), id=f"{name}: {check}")
    for name, strategy in STRATEGIES.items()
    for drill in drills_of(strategy)
    for check in drill.checks
]


@pytest.mark.parametrize("asked", CHECKS)
@pytest.mark.timeout(300)  # the first waits for the trials of all that stand before it
def test_every_strategy_keeps_to_the_conformance(asked, judged):
    """What `clientlab conform` says of it: nothing is broken."""
    strategy, drill, check = asked
    assert judged(strategy, drill, check).broken == ""


def test_every_client_runs_bare_under_its_own_name():
    """`clientlab run -t NAME` works for each client, serially; a program has its own concurrency."""
    for client, row in CLIENTS.items():
        assert not EXECUTORS[STRATEGIES[client].executor].many or row.program
