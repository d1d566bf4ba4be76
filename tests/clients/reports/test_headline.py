"""The answer in a sentence: no bolder than the intervals allow."""

from __future__ import annotations

from clientlab.reports.headline import answers
from clientlab.reports.rows import groups_of
from clients.documents import a_failed_trial, a_run, a_trial


def rounds(strategy: str, *walls: float, **changes):
    """A strategy's trials by their wall seconds."""
    return [a_trial(strategy, number, wall, **changes) for number, wall in enumerate(walls, start=1)]


def said(*parts) -> list[str]:
    """The answer of a run of these trials."""
    return answers(groups_of(a_run(*(trial for part in parts for trial in part))))


FAST, TIED = (1.0, 1.01, 0.99), (1.01, 1.0, 1.02)


def test_the_fastest_is_named_with_its_rate_and_its_lead():
    """Over the next that is surely slower, and over the last, with intervals."""
    (sentence,) = said(rounds("a", *FAST), rounds("b", 2.0, 2.02, 1.98), rounds("c", 9.0, 9.1, 8.9),
                       rounds("d", 5.0, 5.1, 4.9))  # fmt: skip
    assert sentence == (
        "a made 1,000 requests/s, 2.00 (2.00 to 2.00) times as fast as b and 9.00 (8.94 to 9.06) times as fast as c."
    )


def test_strategies_that_cannot_be_told_apart_are_named_as_such():
    """The interval of their ratio holds 1."""
    (sentence,) = said(rounds("a", *FAST), rounds("b", *TIED), rounds("c", 5.0, 5.1, 4.9))
    assert sentence.startswith("a made 1,000 requests/s, 5.00 (")
    assert sentence.endswith(" times as fast as c. b is not measurably slower.")


def test_several_ties_are_listed():
    """And nothing is claimed where all are tied."""
    (sentence,) = said(rounds("a", *FAST), rounds("b", *TIED), rounds("c", *TIED))
    assert sentence == "a made 1,000 requests/s. b and c are not measurably slower."


def test_without_an_interval_nothing_is_claimed():
    """However large the difference: two rounds are not enough."""
    (sentence,) = said(rounds("a", 1.0, 1.0), rounds("b", 9.0, 9.0))
    assert "times as fast" not in sentence
    assert "b is not measurably slower" in sentence


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
