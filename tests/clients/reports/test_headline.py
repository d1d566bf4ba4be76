"""The answer in a sentence: no bolder than the intervals allow."""

from __future__ import annotations

import re

import pytest

from clientlab.reports.headline import answers, route_sentences
from clientlab.reports.rows import groups_of
from clients.documents import a_failed_trial, a_run, a_trial


def rounds(strategy: str, *walls: float, **changes):
    """A strategy's trials by their wall seconds."""
    return [a_trial(strategy, number, wall, **changes) for number, wall in enumerate(walls, start=1)]


def said(*parts) -> list[str]:
    """The answer of a run of these trials."""
    return answers(groups_of(a_run(*(trial for part in parts for trial in part))))


FAST, TIED = (1.0, 1.01, 0.99, 1.0, 1.0), (1.01, 1.0, 1.0, 1.01, 0.99)
OPEN = (1.2, 1.0, 1.1, 1.3, 0.99)
FAR = (1.9, 0.6, 1.0, 1.8, 0.55)
"""About as long as `FAST`, so widely spread that no hundred rounds decide it."""


def test_the_fastest_is_named_with_its_rate_and_its_lead():
    """Over the next that is surely slower, and over the last, with intervals."""
    (sentence,) = said(rounds("a", *FAST), rounds("b", 2.0, 2.1, 1.9, 2.0, 2.0), rounds("c", 9.0, 9.3, 8.7, 9.1, 8.9),
                       rounds("d", 5.0, 5.1, 4.9, 5.0, 5.0))  # fmt: skip
    assert sentence == (
        "a made 1,000 requests/s, 2.00 (1.92 to 2.08) times as fast as b and 9.00 (8.77 to 9.23) times as fast as c."
    )


def test_strategies_that_differ_by_less_than_5_percent_are_equal():
    """The whole interval of their ratio says so."""
    (sentence,) = said(rounds("a", *FAST), rounds("b", *TIED), rounds("c", 5.0, 5.1, 4.9, 5.0, 5.0))
    assert sentence.startswith("a made 1,000 requests/s, 5.00 (")
    assert sentence.endswith(" times as fast as c. b is equal within 5 %.")


def test_several_equal_ones_are_listed():
    """And nothing is claimed where all are equal."""
    (sentence,) = said(rounds("a", *FAST), rounds("b", *TIED), rounds("c", *TIED))
    assert sentence == "a made 1,000 requests/s. b and c are equal within 5 %."


def test_of_an_undecided_strategy_the_answer_says_what_the_rounds_show_and_what_would_decide():
    """The ratio so far, the rounds in which it was slower, and how many rounds it takes at this spread."""
    (sentence,) = said(rounds("a", *FAST), rounds("b", *OPEN))
    assert re.fullmatch(
        r"a made 1,000 requests/s. b is undecided: 1\.1[01] \(0\.9\d+ to 1\.[23]\d+\) times as long, "
        r"slower in 3 of 5 rounds\. In all, about \d+ rounds would decide\.",
        sentence,
    )


@pytest.mark.parametrize(
    ("more", "end"),
    [
        ((), "To decide takes more than 100 rounds at this spread: not worth it."),
        (OPEN, "would decide all but b, which would take more than 100 rounds at this spread: not worth it."),
    ],
)  # fmt: skip
def test_more_than_a_hundred_rounds_are_not_worth_it(more, end):
    """No number is printed that nobody would wait for; arms that fewer rounds decide have theirs."""
    (sentence,) = said(rounds("a", *FAST), rounds("b", *FAR), rounds("c", *more))
    assert sentence.endswith(end)


def test_without_an_interval_nothing_is_claimed():
    """However large the difference: two rounds are not enough."""
    (sentence,) = said(rounds("a", 1.0, 1.0), rounds("b", 9.0, 9.0))
    assert "times as fast" not in sentence
    assert sentence.endswith(
        "b is undecided: 9.00 times as long, slower in 2 of 2 rounds. In all, about 3 rounds would decide."
    )


def test_a_strategy_with_errors_is_not_the_answer():
    """The headline does not name a strategy with errors, even if that strategy was the fastest."""
    (sentence,) = said(rounds("hasty", 0.1, 0.1, 0.1, errors={"reset": 5}), rounds("sound", *FAST))
    assert sentence.startswith("sound made 1,000 requests/s")


def test_a_strategy_alone_is_compared_with_nobody():
    """Its rate is all there is to say."""
    assert said(rounds("a", *FAST)) == ["a made 1,000 requests/s."]


def test_each_way_to_an_upstream_has_its_sentence():
    """Each route to an upstream has a sentence that names the route."""
    assert said(rounds("a", *FAST), rounds("a", 2, 2, 2, route="proxy")) == [
        "workload · aiohttp upstream · direct: a made 1,000 requests/s.",
        "workload · aiohttp upstream · proxy: a made 500 requests/s.",
    ]


def test_a_run_without_a_finished_trial_says_so():
    """The headline of a run without a finished trial states that none finished."""
    assert said([a_failed_trial("a")]) == ["No trial finished."]
    assert said() == ["No trial finished."]


def test_what_another_route_costs_is_said_of_each_strategy():
    """In one sentence: longer, equal within 5 %, or undecided; the first route is the one that others are beside."""
    walls = {"a": (FAST, (2.0, 2.02, 1.98, 2.0, 2.0)), "b": (FAST, TIED), "c": (FAST, OPEN)}
    trials = [
        trial
        for name, (direct, proxy) in walls.items()
        for route, of_route in (("direct", direct), ("proxy", proxy))
        for trial in rounds(name, *of_route, route=route, arm=f"{name} ({route})")
    ]
    (sentence,) = route_sentences(a_run(*trials))
    assert re.fullmatch(
        r"Route proxy instead of direct, time per request: longer with a \(1\.98 \(1\.\d+ to 2\.\d+\) times\); "
        r"equal within 5 % with b; undecided with c \(1\.\d+ \(0\.\d+ to 1\.\d+\) times\)\.",
        sentence,
    )
