"""The selection of scenarios that the tests do with the listed strategies."""

from __future__ import annotations

import pytest

from clientlab.conformance import brief_selection, product, scenarios_of, selection
from clientlab.strategies import CLIENTS, EVERY_CLIENT, EXECUTORS, LISTED, STRATEGIES, STREAM_CLIENTS, client_spec, find
from clients.each_library import one_of_each_library

SELECTED = selection(LISTED.values())
BRIEF = brief_selection(LISTED.values())


def names(pairs):
    """Strategies and scenarios, by their names."""
    return [(strategy.name, scenario.name) for strategy, scenario in pairs]


def test_every_listed_strategy_sends_the_thousand_requests():
    """The budget depends on the pair of client and executor. A program has no scenarios."""
    held = {strategy.name for strategy, scenario in SELECTED if scenario.name == "budget"}
    assert held == {name for name, strategy in STRATEGIES.items() if not CLIENTS[strategy.client].program}


@pytest.mark.parametrize("client", [name for name, row in CLIENTS.items() if not row.program])
def test_every_client_does_each_scenario_that_depends_on_the_client(client):
    """With the executor of the bare client, which sends one request after the other."""
    alone = {(strategy.executor, scenario.name) for strategy, scenario in SELECTED if strategy.client == client}
    expected = {scenario.name for scenario in scenarios_of(STRATEGIES[client]) if "client" in scenario.depends_on}
    assert {"one", "seven", "tls", "refused", "unanswered", "stop"} < expected
    assert {(STRATEGIES[client].executor, scenario) for scenario in expected} <= alone


@pytest.mark.parametrize("client", STREAM_CLIENTS)
def test_a_client_that_only_reads_streams_does_the_scenarios_of_streams_alone(client):
    """With the executor of the bare client. The stream without an end depends on the kind of library alone."""
    done = {scenario.name for strategy, scenario in SELECTED if strategy.name == client}
    assert {"streams", "streams that are left"} <= done
    assert {scenario.name for scenario in scenarios_of(LISTED[client])} == {*done, "streams without an end"}


@pytest.mark.parametrize("executor", [name for name in EXECUTORS if name != "program"])
def test_every_executor_does_each_scenario_that_depends_on_the_executor(executor):
    """What starts all requests at once has no duration."""
    done = {scenario.name for strategy, scenario in SELECTED if strategy.executor == executor}
    expected = {"one", "seven", "stop"} if EXECUTORS[executor].needs_count else {"one", "seven", "duration", "stop"}
    assert expected <= done


@pytest.mark.parametrize(
    "strategy",
    ["pycurl@multi", "requests-session@futures", "requests-session@gevent", "urllib3@gevent", "aiohttp-uvloop@workers"],
)
def test_an_executor_that_changes_how_a_client_sends_meets_the_faults_too(strategy):
    """It drives the client, wraps or patches it, or runs it on another event loop."""
    done = {scenario.name for chosen, scenario in SELECTED if chosen.name == strategy}
    assert {"faults", "tls", "refused", "unanswered"} < done


@pytest.mark.parametrize(
    "strategy", ["pycurl@multi", "requests-session@futures", "requests-session@gevent", "urllib3@gevent"]
)
def test_an_executor_that_changes_how_a_library_sends_meets_the_faults_in_the_brief_selection(strategy):
    """As in the selection: the library is another one then."""
    assert {"faults", "tls", "refused", "unanswered"} < {row.name for chosen, row in BRIEF if chosen.name == strategy}


@pytest.mark.parametrize("library", sorted({(spec.distribution, spec.http) for spec in EVERY_CLIENT.values()}))
def test_the_brief_selection_does_each_scenario_of_the_selection_with_every_library(library):
    """In each version of HTTP that it speaks, but for the thousand requests. A program has no scenarios."""

    def done(pairs):
        return {
            scenario.name
            for strategy, scenario in pairs
            if (client_spec(strategy.client).distribution, client_spec(strategy.client).http) == library
            and not scenario.depends_on <= {"executor", "library kind", "strategy"}
        }

    assert done(BRIEF) == done(SELECTED)


@pytest.mark.parametrize("executor", [name for name in EXECUTORS if name != "program"])
def test_the_brief_selection_sends_the_thousand_requests_with_every_executor(executor):
    """And does what else depends on the executor."""
    done = {scenario.name for strategy, scenario in BRIEF if strategy.executor == executor}
    assert {"budget", "one", "seven", "stop"} <= done
    assert ("duration" in done) >= (not EXECUTORS[executor].needs_count)


def test_the_brief_selection_sends_the_thousand_requests_with_every_kind_of_library():
    """Blocking and asyncio ones, native or not: the others are left to `--every-client`."""

    def kinds(pairs):
        specs = [client_spec(strategy.client) for strategy, scenario in pairs if scenario.name == "budget"]
        return {(spec.kind, spec.native) for spec in specs}

    assert kinds(BRIEF) == kinds(SELECTED)
    assert len(kinds(BRIEF)) == 4


def test_the_brief_selection_is_a_part_of_the_selection_and_sends_one_request_with_every_client():
    """So that what it leaves out is what `--every-client` adds."""
    assert set(names(BRIEF)) < set(names(SELECTED))
    assert [strategy.name for strategy, scenario in BRIEF if scenario.name == "one"] == [
        strategy.name for strategy, scenario in SELECTED if scenario.name == "one"
    ]


def test_nothing_is_done_twice_and_about_half_of_the_product_is_left_out():
    """Each pair is one of the product's."""
    everything = names(product(LISTED.values()))
    assert len(set(names(SELECTED))) == len(SELECTED)
    assert set(names(SELECTED)) < set(everything)
    assert 2 * len(SELECTED) < 1.1 * len(everything)


def test_of_each_library_slow_tests_take_one_client_that_keeps_connections_and_mark_the_others():
    """In each version of HTTP; strategies of one list stand in its order."""
    asked = ["requests", "httpx-async", "requests-session", "httpx-client", "httpx-client-h2", "pycurl@multi"]
    values = one_of_each_library(asked)
    assert [value.values for value in values] == [(name,) for name in asked]
    further = [value.values[0] for value in values if value.marks]
    assert further == ["requests", "httpx-client"]


@pytest.mark.parametrize("name", ["requests@threads", "aiohttp@gather", "niquests-h2", "pycurl@multi"])
def test_of_a_strategy_by_itself_nothing_is_left_out(name):
    """As `clientlab conform NAME` does it."""
    assert names(selection([find(name)])) == names(product([find(name)]))
