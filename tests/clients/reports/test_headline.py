"""The answer in a sentence: no bolder than the intervals allow."""

from __future__ import annotations

import re

import pytest

from clientlab.reports import as_html
from clientlab.reports.charts import times
from clientlab.reports.headline import headline, summarize_run, version_answers
from clientlab.reports.rows import Report, figure_table, groups_of
from clientlab.results.document import Environment
from clientlab.results.plan import Arm, EnvironmentSpec
from clientlab.results.store import RUN_FILE, Store
from clientlab.results.trial import StreamFigures
from clientlab.workload.values import Link
from clientlab.workload.workload import make_workload
from clients.documents import a_failed_trial, a_run, a_trial, quantiles
from clients.reports.views import answers, shown


def rounds(strategy: str, *walls: float, **changes):
    return [
        a_trial(strategy, number, wall, **changes)
        for number, wall in enumerate(walls, start=1)
    ]


def said(*parts) -> list[str]:
    return answers(a_run(*(trial for part in parts for trial in part)))


FAST = (1.0, 1.01, 0.99, 1.0, 1.0)
TIED = (1.01, 1.0, 1.0, 1.01, 0.99)
OPEN = (1.2, 1.0, 1.1, 1.3, 0.99)


def test_the_fastest_is_named_with_its_rate_and_its_lead():
    (sentence,) = said(
        rounds("a", *FAST),
        rounds("b", 2.0, 2.1, 1.9, 2.0, 2.0),
        rounds("c", 9.0, 9.3, 8.7, 9.1, 8.9),
        rounds("d", 5.0, 5.1, 4.9, 5.0, 5.0),
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
    quoted = []
    for rounds_of_b in (4, 5):
        run = a_run(*trials, budget=60.0, rounds=3).updated(decided={"b": rounds_of_b})
        quoted.append(headline(Report(run)).sentences[0])
    assert "2.00 (1.92 to 2.09) times as fast as b" in quoted[0]
    assert "at least 1.92 times as fast as b" in quoted[1]


@pytest.mark.parametrize("streams", [False, True])
def test_servers_and_environments_differ_in_milliseconds(streams):
    """By 1, 2 and 3 ms; an interval of p99 needs five rounds.

    Streams also differ in the time to the first event.
    """
    arms = []
    trials = []
    for where, p50s in (("old", (0.010, 0.020, 0.030)), ("new", (0.011, 0.022, 0.033))):
        name = f"urllib3 in {where}"
        arms.append(
            Arm(
                name=name,
                strategy="urllib3",
                upstream="aiohttp",
                route="direct",
                workload="workload",
                environment=where,
            )
        )
        trials += [
            a_trial(
                "urllib3",
                number,
                arm=name,
                environment=where,
                latency_seconds=quantiles(p50, 2 * p50),
                stream=(
                    StreamFigures(events=9, first_event_seconds=quantiles(p50 / 2))
                    if streams
                    else None
                ),
            )
            for number, p50 in enumerate(p50s, 1)
        ]
    specs = {where: EnvironmentSpec(folder="/x") for where in ("old", "new")}
    ((sentence, *_),) = version_answers(a_run(*trials, arms=arms, environments=specs))
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
    parts = (
        ("requests-session-per-thread", walls),
        ("requests-session@threads", FAST),
        ("pycurl@threads", (0.5,) * 5),
    )
    run = a_run(*(trial for name, of in parts for trial in rounds(name, *of)))
    (answer,) = [
        one
        for one in headline(Report(run)).sentences
        if one.startswith("requests-session-per-thread takes")
    ]
    assert said in answer


def test_a_sentence_about_a_link_tells_routes_apart():
    trials = [
        a_trial(
            "urllib3",
            number,
            wall + number / 100,
            route=route,
            link=link,
            arm=f"{route} {link}",
        )
        for route in ("proxy", "proxy-tls")
        for link, wall in ((None, 1.0), (Link(rtt=0.02), 2.0))
        for number in (1, 2, 3)
    ]
    section = headline(Report(a_run(*trials)))
    said = [
        *section.sentences,
        *(line for part in section.parts for line in part.items),
    ]
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
    (sentence,) = said(rounds("a", *FAST), rounds("b", *walls))
    assert re.search(answer, sentence)


def varied(strategy: str, cpu: float, p99: float, spread: float = 0.01, **changes):
    """Five rounds of equal speed, with 1,000 requests each, whose CPU time and p99 vary
    by that share.
    """
    factors = [1 + spread * place for place in (-1, 0.5, 1, -0.5, 0)]
    return [
        a_trial(
            strategy,
            n,
            wall,
            cpu_seconds=cpu * times,
            latency_seconds=quantiles(p99=p99 * times),
            **changes,
        )
        for n, (wall, times) in enumerate(zip(TIED, factors, strict=True), 1)
    ]


LESS_CPU = "a needs 0.200 (0.200 to 0.200) times the CPU time per request of b"
LESS_P99 = "a has 0.500 (0.500 to 0.500) times the p99 of b"


@pytest.mark.parametrize(
    ("cpu", "p99", "changes", "answer"),
    [
        (0.5, 0.009, {}, f"{LESS_CPU}; {LESS_P99}."),
        (0.5, 0.009, {"requests": 300}, f"{LESS_CPU}."),  # too few for a p99
        (0.5, 0.009, {"waits_for_connection": True}, f"{LESS_CPU}."),
        (0.103, 0.0046, {}, ""),  # a few percent do not matter
        (0.12, 0.005, {"spread": 0.7}, ""),  # the intervals include 1
    ],
)
def test_of_equally_fast_arms_the_answer_says_which_costs_less(
    cpu, p99, changes, answer
):
    """Only what intervals show.

    Latencies that hold the wait for a connection are not compared with others.
    """
    few = {"requests": changes["requests"]} if "requests" in changes else {}
    run = a_run(*varied("a", 0.1, 0.0045, **few), *varied("b", cpu, p99, **changes))
    (sentence,) = headline(Report(run)).sentences
    found = re.fullmatch(
        r". made [\d,]+ requests/s; . is equal to . within 5 %\. ?(.*)", sentence
    )
    assert found[1] == answer


def test_the_list_of_runs_says_that_an_answer_is_undecided(tmp_path):
    """Even if the answer is too long for its line."""
    trials = [
        *rounds("a", *FAST),
        *rounds("b" * 90, *OPEN),
        *rounds("slower", *(9 * wall for wall in FAST)),
    ]
    store = Store(tmp_path)
    run = a_run(*trials)
    (tmp_path / run.run).mkdir()
    (tmp_path / run.run / RUN_FILE).write_text(run.model_dump_json())
    answer = summarize_run(store, run.run)["answer"]
    assert answer.endswith("… undecided")
    assert len(answer) <= 120


def test_a_strategy_with_errors_is_not_the_answer():
    (sentence,) = said(
        rounds("hasty", 0.1, 0.1, 0.1, errors={"reset": 5}), rounds("sound", *FAST)
    )
    assert sentence.startswith("sound made 1,000 requests/s")


def test_an_answer_needs_no_arm_that_is_ranked_and_without_errors():
    """Each arm either failed some requests, or never had so many in flight."""
    failing = rounds("failing", 1, 1, 1, concurrency=16, errors={"reset": 2})
    short = rounds("short", 1, 1, 1, concurrency=16, requests=9)
    (sentence,) = said(short, failing)
    assert sentence.startswith(
        "failing made 998 requests/s. short is not ranked: it sent only 9 requests"
    )


def test_if_all_arms_have_errors_none_stands_out():
    """The others are compared with the fastest nevertheless."""
    run = a_run(
        *(trial for name in "ab" for trial in rounds(name, *FAST, errors={"reset": 5}))
    )
    (group,) = groups_of(run)
    (chart,) = times(run, [group])
    table = figure_table(group)
    assert list(table.best) == []
    for bar in chart.rows:
        assert not bar.first
    assert table.rows[0][table.headings.index("x fastest (95 %)")] == "1"


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
    arms = [
        Arm(
            name=name,
            label=name,
            strategy=strategy,
            upstream="aiohttp",
            route="direct",
            workload="threads",
        )
        for name, strategy in names.items()
    ]
    trials = [
        trial
        for name, of in names.items()
        for trial in rounds(of, 1.0, arm=name, workload="threads")
    ]
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
    newer = held.updated(packages={"urllib3": "2.6.0"})
    for head, expected in ((held.updated(folder="/b"), 1), (newer, 0)):
        environments = {"base": held, "head": head}
        run = a_run(a_trial(environment="base"))
        run = run.updated(
            surroundings=run.surroundings.updated(environments=environments)
        )
        assert (
            shown(run).count("base and head hold the same Python and the same packages")
            == expected
        )


def test_trials_that_were_measured_again_after_an_interruption_did_not_fail():
    run = a_run(
        a_failed_trial("urllib3", "interrupted", status="lost"), a_trial("urllib3")
    )
    text = shown(run)
    assert "1 of 1 trials done" in text
    assert "interrupted" not in text


def test_a_run_without_a_finished_trial_says_so():
    assert said([a_failed_trial("a")]) == ["No trial finished."]
    assert said() == ["No trial finished."]
