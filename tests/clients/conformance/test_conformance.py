"""Equal budgets: every listed strategy does the same work, as seen by a server that shares no code with the lab."""

from __future__ import annotations

import pytest

from clientlab.conformance import scenarios_of, selection
from clientlab.strategies import CLIENTS, EXECUTORS, STRATEGIES

SELECTED = selection(STRATEGIES.values())


@pytest.mark.real
@pytest.mark.release
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("strategy", "scenario"),
    [pytest.param(*pair, id=f"{pair[0].name}: {pair[1].name}") for pair in SELECTED],
)
def test_every_strategy_keeps_to_the_conformance(strategy, scenario):
    """What `clientlab conform` says of it: nothing is broken."""
    results = scenario.judge(strategy)
    assert {result.check: result.broken for result in results if result.broken} == {}
    if all(result.unchecked for result in results):
        pytest.skip(results[0].unchecked)


def test_each_scenario_is_done_with_every_client_and_every_executor_that_decides_its_outcome():
    """With a client alone, and with an executor; the budget depends on the pair of both."""
    done = {(strategy.client, scenario.name) for strategy, scenario in SELECTED}
    done |= {(strategy.executor, scenario.name) for strategy, scenario in SELECTED}
    for strategy in STRATEGIES.values():
        for scenario in scenarios_of(strategy):
            assert "client" not in scenario.depends_on or (strategy.client, scenario.name) in done
            assert "executor" not in scenario.depends_on or (strategy.executor, scenario.name) in done
    budgets = [strategy.name for strategy, scenario in SELECTED if scenario.name == "budget"]
    assert sorted(budgets) == sorted(name for name, one in STRATEGIES.items() if not CLIENTS[one.client].program)


def test_every_client_runs_bare_under_its_own_name():
    """`clientlab run -t NAME` works for each client: serially, or in threads if it goes with threads only."""
    for client, row in CLIENTS.items():
        assert EXECUTORS[STRATEGIES[client].executor].concurrent == (bool(row.program) or row.only[:1] == ("threads",))
