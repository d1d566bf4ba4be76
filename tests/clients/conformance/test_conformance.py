"""Conformance of the listed strategies, as `clientlab conform` checks it."""

from __future__ import annotations

import pytest

from clientlab.conformance import conform
from clientlab.strategies import CLIENTS, STRATEGIES


@pytest.mark.real
@pytest.mark.release
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "strategy", [one for one in STRATEGIES.values() if not CLIENTS[one.client].program], ids=lambda one: one.name
)
def test_every_strategy_conforms(strategy):
    """Every listed strategy does the same work, as seen by a server that shares no code with the lab."""
    assert {result.check: result.broken for result in conform(strategy) if result.broken} == {}
