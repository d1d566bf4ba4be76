"""The answer in a sentence: no bolder than the intervals allow."""

from __future__ import annotations

import re

import pytest

from clientlab.reports import as_html
from clientlab.reports.answers import version_answers
from clientlab.reports.charts import times
from clientlab.reports.headline import headline, summarize_run
from clientlab.reports.rows import Report, figure_table, groups_of
from clientlab.results.document import Environment
from clientlab.results.store import RUN_FILE, Store
from clientlab.results.trial import StreamFigures, Trial
from clientlab.workload.values import Link
from clientlab.workload.workload import make_workload
from clients.documents import (
    a_failed_trial,
    a_run,
    a_trial,
    an_arm,
    quantiles,
    rounds,
)
from clients.reports.views import answers, columns, shown


def said(*trials: Trial) -> list[str]:
    return answers(a_run(*trials))


FAST = (1.0, 1.01, 0.99, 1.0, 1.0)
TIED = (1.01, 1.0, 1.0, 1.01, 0.99)
OPEN = (1.2, 1.0, 1.1, 1.3, 0.99)


def test_the_fastest_is_named_with_its_rate_and_its_lead():
    (sentence,) = said(
        *rounds("a", *FAST),
        *rounds("b", 2.0, 2.1, 1.9, 2.0, 2.0),
        *rounds("c", 9.0, 9.3, 8.7, 9.1, 8.9),
        *rounds("d", 5.0, 5.1, 4.9, 5.0, 5.0),
    )
    assert (
        sentence
        == "a made 1,000 requests/s, 2.00 (1.92 to 2.09) times as fast as b and 9.00"
        " (8.75 to 9.26) times as fast as c."
    )


def test_an_arm_whose_rounds_were_stopped_is_slower_by_at_least_the_lower_end():
    """A look after each round ends at a large difference.

    The first look, after four rounds, chooses none.
    """
    trials = [*rounds("a", *FAST), *rounds("b", 2.0, 2.1, 1.9, 2.0, 2.0)]
    run = a_run(*trials, budget=60.0, rounds=3)
    (first_look,) = headline(Report(run.updated(decided={"b": 4}))).sentences
    assert "2.00 (1.92 to 2.09) times as fast as b" in first_look
    (second_look,) = headline(Report(run.updated(decided={"b": 5}))).sentences
    assert "at least 1.92 times as fast as b" in second_look


@pytest.mark.parametrize("streams", [False, True])
def test_servers_and_environments_differ_in_milliseconds(streams):
    """By 1, 2 and 3 ms; an interval of p99 needs five rounds.

    Streams also differ in the time to the first event.
    """

    def trial(environment: str, number: int, p50: float) -> Trial:
        stream = None
        if streams:
            first_event = quantiles(p50 / 2)
            stream = StreamFigures(events=9, first_event_seconds=first_event)
        return a_trial(
            "urllib3",
            number,
            arm=f"urllib3 in {environment}",
            environment=environment,
            latency_seconds=quantiles(p50, 2 * p50),
            stream=stream,
        )

    run = a_run(
        trial("old", 1, 0.010),
        trial("old", 2, 0.020),
        trial("old", 3, 0.030),
        trial("new", 1, 0.011),
        trial("new", 2, 0.022),
        trial("new", 3, 0.033),
    )
    ((sentence, *_),) = version_answers(run)
    assert "Latency: p50 +2.00 ms (-" in sentence
    assert ", p99 +4.00 ms" in sentence
    assert ("first_event_p50 +1.00 ms (" in sentence) == streams


@pytest.mark.parametrize(
    ("walls", "said"),
    [
        (TIED, "equal within 5 %"),
        (tuple(2 * wall for wall in FAST), "takes 2.00 (2.00 to 2.00) times"),
        (OPEN, ": undecided."),
    ],
)
def test_whether_threads_share_a_session_is_answered_in_a_sentence(walls, said):
    run = a_run(
        *rounds("requests-session-per-thread", *walls),
        *rounds("requests-session@threads", *FAST),
        *rounds("pycurl@threads", *[0.5] * 5),
    )
    (answer,) = [
        sentence
        for sentence in headline(Report(run)).sentences
        if sentence.startswith("requests-session-per-thread takes")
    ]
    assert said in answer


def test_a_sentence_about_a_link_tells_routes_apart():
    trials = []
    for route in ("proxy", "proxy-tls"):
        near = {"route": route, "arm": route}
        far = {"route": route, "arm": f"{route} far", "link": Link(rtt=0.02)}
        trials += rounds("urllib3", 1.01, 1.02, 1.03, **near)
        trials += rounds("urllib3", 2.01, 2.02, 2.03, **far)
    section = headline(Report(a_run(*trials)))
    said = list(section.sentences)
    for part in section.parts:
        said += part.items
    (sentence,) = [line for line in said if line.startswith("Link ")]
    assert re.search(
        r"slower with urllib3 · proxy \(1\.9\d .*\) and urllib3 · proxy-tls \(1\.9\d ",
        sentence,
    )


@pytest.mark.parametrize(
    ("walls", "answer"),
    [
        (
            OPEN,
            (
                r"; b is undecided\..* b, 1\.1[01] \(0\.9\d+ to 1\.[23]\d+\).* 3 of 5"
                r" rounds.* \d+ to \d+ .* decide\.$"
            ),
        ),
        (TIED, r"b is equal to a within 5 %\.$"),
        (
            (9.0, 9.0),
            (
                r"^(?!.*times as fast).*Undecided: b, 8\.96 times as long.*An interval"
                r" takes 3 rounds\.$"
            ),
        ),
    ],
)
def test_an_answer_claims_no_more_than_the_intervals_show(walls, answer):
    (sentence,) = said(*rounds("a", *FAST), *rounds("b", *walls))
    assert re.search(answer, sentence)


def varied(strategy: str, cpu: float, p99: float, spread: float = 0.01, **changes):
    """Five rounds of equal speed, with 1,000 requests each, whose CPU time and p99 vary
    by that share.
    """
    trials = []
    for number, place in enumerate((-1, 0.5, 1, -0.5, 0), start=1):
        factor = 1 + spread * place
        trials.append(
            a_trial(
                strategy,
                number,
                TIED[number - 1],
                cpu_seconds=cpu * factor,
                latency_seconds=quantiles(p99=p99 * factor),
                **changes,
            )
        )
    return trials


LESS_CPU = "a needs 0.200 (0.200 to 0.200) times the CPU time per request of b"
LESS_P99 = "a has 0.500 (0.500 to 0.500) times the p99 of b"


@pytest.mark.parametrize(
    ("cpu", "p99", "requests", "changes", "answer"),
    [
        (0.5, 0.009, 1000, {}, f"{LESS_CPU}; {LESS_P99}."),
        (0.5, 0.009, 300, {}, f"{LESS_CPU}."),  # too few for a p99
        (0.5, 0.009, 1000, {"waits_for_connection": True}, f"{LESS_CPU}."),
        (0.103, 0.0046, 1000, {}, ""),  # a few percent do not matter
        (0.12, 0.005, 1000, {"spread": 0.7}, ""),  # the intervals include 1
    ],
)
def test_of_equally_fast_arms_the_answer_says_which_costs_less(
    cpu, p99, requests, changes, answer
):
    """Only what intervals show.

    Latencies that hold the wait for a connection are not compared with others.
    """
    a = varied("a", 0.1, 0.0045, requests=requests)
    b = varied("b", cpu, p99, requests=requests, **changes)
    (sentence,) = headline(Report(a_run(*a, *b))).sentences
    equal = r". made [\d,]+ requests/s; . is equal to . within 5 %\. ?"
    found = re.fullmatch(f"{equal}(.*)", sentence)
    assert found[1] == answer


def test_the_list_of_runs_says_that_an_answer_is_undecided(tmp_path):
    """Even if the answer is too long for its line."""
    trials = [
        *rounds("a", *FAST),
        *rounds("b" * 90, *OPEN),
        *rounds("slower", *(9 * wall for wall in FAST)),
    ]
    run = a_run(*trials)
    folder = tmp_path / run.run
    folder.mkdir()
    (folder / RUN_FILE).write_text(run.model_dump_json())
    answer = summarize_run(Store(tmp_path), run.run)["answer"]
    assert answer.endswith("… undecided")
    assert len(answer) <= 120


def test_a_strategy_with_errors_is_not_the_answer():
    hasty = rounds("hasty", 0.1, 0.1, 0.1, errors={"reset": 5})
    (sentence,) = said(*hasty, *rounds("sound", *FAST))
    assert sentence.startswith("sound made 1,000 requests/s")


def test_an_answer_needs_no_arm_that_is_ranked_and_without_errors():
    """Each arm either failed some requests, or never had so many in flight."""
    failing = rounds("failing", 1, 1, 1, concurrency=16, errors={"reset": 2})
    short = rounds("short", 1, 1, 1, concurrency=16, requests=9)
    (sentence,) = said(*short, *failing)
    assert sentence.startswith(
        "failing made 998 requests/s. short is not ranked: it sent only 9 requests"
    )


def test_if_all_arms_have_errors_none_stands_out():
    """The others are compared with the fastest nevertheless."""
    errors = {"reset": 5}
    run = a_run(*rounds("a", *FAST, errors=errors), *rounds("b", *FAST, errors=errors))
    (group,) = groups_of(run)
    (chart,) = times(run, [group])
    for bar in chart.rows:
        assert not bar.first
    assert list(figure_table(group).best) == []
    assert columns(run)["x fastest (95 %)"][0] == "1"


def test_a_question_is_shown_without_marks_and_a_long_path_without_its_middle():
    """A terminal and a page do not interpret backticks."""
    path = f"/begin{'x' * 1200}end"
    run = a_run(
        a_trial(),
        question="Is `head` slow?",
        workloads={"workload": make_workload(requests=1000, path=path)},
    )
    text = shown(run, 80)
    assert text.startswith("Is head slow?\n")
    assert len(text.splitlines()) < 40
    assert re.search(r"GET /beginx+…x+end, 1,000 requests\.", shown(run, 200))
    assert "<title>Is head slow? · clientlab</title>" in as_html.render(run)


def test_an_arm_does_not_repeat_the_name_of_its_group():
    """`threads` is the workload.

    A name that says more than group and strategy is kept.
    """
    names = {
        "threads urllib3@threads": "urllib3@threads",
        "threads pycurl": "curl@threads",
    }
    arms = []
    trials = []
    for name, strategy in names.items():
        arms.append(an_arm(strategy, name=name, label=name, workload="threads"))
        trials.append(a_trial(strategy, arm=name, workload="threads"))
    (group,) = groups_of(a_run(*trials, arms=arms))
    assert {row.name for row in group.rows} == {"urllib3@threads", "threads pycurl"}


def test_environments_that_hold_the_same_are_named():
    """Whatever their folders are: what was to be compared is not different."""
    held = Environment(
        folder="/a",
        python="CPython 3.13.1",
        python_build="GIL",
        openssl=None,
        packages={"urllib3": "2.5.0"},
        compiled={},
    )

    def text_with(head: Environment) -> str:
        run = a_run(a_trial(environment="base"))
        environments = {"base": held, "head": head}
        where = run.surroundings.updated(environments=environments)
        return shown(run.updated(surroundings=where))

    words = "base and head hold the same Python and the same packages"
    same = held.updated(folder="/b")
    newer = held.updated(packages={"urllib3": "2.6.0"})
    assert text_with(same).count(words) == 1
    assert words not in text_with(newer)


def test_trials_that_were_measured_again_after_an_interruption_did_not_fail():
    lost = a_failed_trial("urllib3", "interrupted", status="lost")
    text = shown(a_run(lost, a_trial("urllib3")))
    assert "1 of 1 trials done" in text
    assert "interrupted" not in text


def test_a_run_without_a_finished_trial_says_so():
    assert said(a_failed_trial("a")) == ["No trial finished."]
    assert said() == ["No trial finished."]
