"""Equal budgets: every listed strategy does the same work, as seen by a server that shares no code with the lab."""

from __future__ import annotations

import pytest

from clientlab.conformance import brief_selection, product, selection
from clientlab.strategies import EVERY_CLIENT, EXECUTORS, LISTED


def pytest_generate_tests(metafunc):
    """The checks of the brief selection, or of that with every client; with --full, of all that a strategy can do.

    One request with every client and every executor is quick, and shows whether it works at all.
    """
    if "asked" in metafunc.fixturenames:
        option = metafunc.config.getoption
        choose = product if option("full") else selection if option("every_client") else brief_selection
        checks = [
            pytest.param(
                (strategy.name, scenario.name, check),
                id=f"{strategy.name}: {check}",
                marks=[] if scenario.name == "one" else [pytest.mark.slow],
            )
            for strategy, scenario in choose(LISTED.values())
            for check in scenario.checks
        ]
        metafunc.parametrize("asked", checks)


@pytest.mark.timeout(300)  # the first waits for the trials of all that stand before it
def test_every_strategy_keeps_to_the_conformance(asked, judged):
    """What `clientlab conform` says of it: nothing is broken."""
    strategy, scenario, check = asked
    assert judged(strategy, scenario, check).broken == ""


def test_every_client_runs_bare_under_its_own_name():
    """`clientlab run -t NAME` works for each client: serially, or in threads if it goes with threads only."""
    for client, row in EVERY_CLIENT.items():
        assert EXECUTORS[LISTED[client].executor].concurrent == (bool(row.program) or row.only[:1] == ("threads",))
