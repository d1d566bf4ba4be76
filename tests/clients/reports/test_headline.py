"""The answer in a sentence: no bolder than the intervals allow."""

from __future__ import annotations

import re

import pytest

from clientlab.reports import as_html
from clientlab.reports.headline import answers, headline
from clientlab.reports.rows import groups_of
from clientlab.reports.sections import Report
from clients.documents import a_failed_trial, a_run, a_trial


def rounds(strategy: str, *walls: float, **changes):
    """A strategy's trials by their wall seconds."""
    return [a_trial(strategy, number, wall, **changes) for number, wall in enumerate(walls, start=1)]


def said(*parts) -> list[str]:
    """The answer of a run of these trials."""
    return answers(groups_of(a_run(*(trial for part in parts for trial in part))))


FAST, TIED = (1.0, 1.01, 0.99, 1.0, 1.0), (1.01, 1.0, 1.0, 1.01, 0.99)
OPEN = (1.2, 1.0, 1.1, 1.3, 0.99)


def test_the_fastest_is_named_with_its_rate_and_its_lead():
    """Over the next that is surely slower, and over the last, with intervals."""
    (sentence,) = said(rounds("a", *FAST), rounds("b", 2.0, 2.1, 1.9, 2.0, 2.0), rounds("c", 9.0, 9.3, 8.7, 9.1, 8.9),
                       rounds("d", 5.0, 5.1, 4.9, 5.0, 5.0))  # fmt: skip
    assert sentence == (
        "a made 1,000 requests/s, 2.00 (1.92 to 2.09) times as fast as b and 9.00 (8.75 to 9.26) times as fast as c."
    )


def test_each_question_has_one_sentence_before_the_details():
    """The page begins with it; what is undecided, equal or at another c follows."""
    slow = rounds("d", 9.0, 9.1, 8.9, 9.0, 9.0, concurrency=8)
    page = as_html.render(a_run(*rounds("a", *FAST), *rounds("b", *TIED), *rounds("c", *OPEN), *slow))
    first, rest = re.search(r'<div class="answers">(.*?)</div>(.*)', page, re.DOTALL).groups()
    assert re.findall("<p>(.*?)</p>", first) == ["With c=1, a made 1,000 requests/s."]
    assert "b is equal within 5 %." in rest
    assert "c is undecided" in rest


@pytest.mark.parametrize(
    ("walls", "said"),
    [
        (TIED, "equal within 5 %"),
        (tuple(2 * wall for wall in FAST), "takes 2.00 (2.00 to 2.00) times"),
        (OPEN, "undecided; to decide takes about"),
    ],
)
def test_whether_threads_share_a_session_is_answered_in_a_sentence(walls, said):
    """By the two forms themselves, whichever library is the fastest."""
    parts = (("requests-session-per-thread", walls), ("requests-session@threads", FAST), ("pycurl@threads", (0.5,) * 5))
    run = a_run(*(trial for name, of in parts for trial in rounds(name, *of)))
    (answer,) = [one for one in headline(Report(run)).sentences if one.startswith("One session per thread")]
    assert said in answer


def test_of_an_undecided_strategy_the_answer_says_what_the_rounds_show_and_what_would_decide():
    """The ratio so far, the rounds in which it was slower, and how many rounds it takes at this spread."""
    (sentence,) = said(rounds("a", *FAST), rounds("b", *OPEN))
    assert re.search(r"b is undecided: 1\.1[01] \(0\.9\d+ to 1\.[23]\d+\).* 3 of 5 rounds.* about \d+ rounds", sentence)


def test_without_an_interval_nothing_is_claimed():
    """However large the difference: two rounds are not enough."""
    (sentence,) = said(rounds("a", 1.0, 1.0), rounds("b", 9.0, 9.0))
    assert "times as fast" not in sentence
    assert "b is undecided: 9.00 times as long" in sentence
    assert sentence.endswith("An interval takes 3 rounds.")


def test_a_strategy_with_errors_is_not_the_answer():
    """The headline does not name a strategy with errors, even if that strategy was the fastest."""
    (sentence,) = said(rounds("hasty", 0.1, 0.1, 0.1, errors={"reset": 5}), rounds("sound", *FAST))
    assert sentence.startswith("sound made 1,000 requests/s")


def test_a_run_without_a_finished_trial_says_so():
    """The headline of a run without a finished trial states that none finished."""
    assert said([a_failed_trial("a")]) == ["No trial finished."]
    assert said() == ["No trial finished."]
