"""The atlas: each listed strategy is an arm or left out for a reason, and the pages state what the run file gives."""

from __future__ import annotations

import json
import re

import pytest

from clientlab.experiments.file import bundled, read_plan
from clientlab.judging.judgement import read_judged, with_judgement
from clientlab.results.plan import Arm
from clientlab.results.regular_file import content_of
from clientlab.running.due import seconds_of
from clientlab.strategies import EXECUTORS, STRATEGIES
from clientlab.workload.workload import Workload
from clients.documents import a_failed_trial, a_run, a_trial
from findings import atlas
from findings.page import ATLAS, runs
from findings.situations import SituationAnswer, answers
from findings.storing import BULKY
from generate.atlas import WORK

PLAN = read_plan(bundled()["atlas"])


def test_every_listed_strategy_is_measured_or_left_out_for_a_reason():
    """With each workload it is an arm, or a sentence of the run file gives the reason why not."""
    done = {(arm.workload, arm.strategy) for arm in PLAN.arms}
    assert len(done) == len(PLAN.arms)
    timed = {name for name, one in STRATEGIES.items() if not EXECUTORS[one.executor].needs_count and one.client != "ab"}
    assert {name for _, name in done} == timed
    for work in WORK:
        sentences = [one for one in PLAN.uncontrolled if one.startswith(f"Workload {work.name} leaves out, because ")]
        named = [name for one in sentences for name in one.rpartition(": ")[2].removesuffix(".").split(", ")]
        assert len(named) == len(set(named))
        assert {(work.name, name) for name in named} == {(work.name, name) for name in STRATEGIES} - done


def test_the_atlas_takes_no_more_than_an_hour():
    """By the lab's own estimate, on two cores, with its twelve rounds."""
    assert PLAN.rounds == 12
    assert seconds_of(PLAN) <= 60 * 60


def small_run(rounds: int = 3, **walls: float):
    """A run of the workload json: strategy → wall seconds, each with a little noise that is equal within a round."""
    trials = [
        a_trial(name, number, wall * (1 + number / 100), workload="json", arm=f"json {name}", cpu_seconds=wall / 2,
                peak_pss_bytes=(16 << 20) + number)
        for name, wall in walls.items()
        for number in range(1, rounds + 1)
    ]  # fmt: skip
    arms = [
        Arm(name=f"json {name}", strategy=name, upstream="aiohttp", route="direct", workload="json", group="json")
        for name in walls
    ]
    workloads = {"json": Workload(requests=1000)}
    return a_run(*trials, arms=arms, workloads=workloads, uncontrolled=["Left out: `ab`."], rounds=rounds)


def answer_of(run, key: str) -> SituationAnswer:
    """The answer to a situation."""
    return next(one for one in answers(run) if one.situation.key == key)


def test_an_answer_is_computed_from_the_run():
    """The fastest with its rate, those that are undecided, and the surely slower ones; the table has the same order."""
    noisy = small_run(5, **{"http.client": 1.0, "urllib3": 1.0, "requests": 4.0, "httpx-client": 2.0})
    trials = [
        trial.model_copy(update={"wall_seconds": (1.3, 0.9, 1.1, 1.2, 0.8)[trial.round - 1]})
        if trial.strategy == "urllib3" else trial
        for trial in noisy.trials
    ]  # fmt: skip
    found = answer_of(noisy.model_copy(update={"trials": trials}), "script")
    assert re.fullmatch(
        r"`http\.client` is the fastest of 4, with 971 requests per second; `urllib3` \(!\) is undecided; "
        r"the 2 slower ones take from 2\.00[^`]+ times \(`httpx-client`\) to 4\.00[^`]+ times \(`requests`\) as long\.",
        found.sentence,
    )
    assert [row[:2] for row in found.cells] == [
        ["http.client", "fastest"], ["urllib3 (!)", "undecided"], ["httpx-client", "slower"], ["requests", "slower"],
    ]  # fmt: skip
    assert [(row.name, row.first) for row in found.chart.rows] == [
        ("http.client", True), ("urllib3", False), ("httpx-client", False), ("requests", False),
    ]  # fmt: skip
    assert found.decided == (2, 3)
    assert found.command == (
        "clientlab run -t http.client -t urllib3 -t httpx-client -t requests --budget 60s --url http://your.server/path"
    )


def test_no_interval_is_quoted_that_is_wider_than_1_3_from_end_to_end():
    """Of one that is surely slower the lower end is, and of an undecided one nothing."""
    calm = small_run(5, **{"http.client": 1.0, "urllib3": 1.0, "requests": 9.0})
    wild = (1.0, 3.0, 0.5, 2.0, 0.8)
    trials = [
        trial if trial.strategy == "http.client"
        else trial.model_copy(update={"wall_seconds": trial.wall_seconds * wild[trial.round - 1]})
        for trial in calm.trials
    ]  # fmt: skip
    found = answer_of(calm.model_copy(update={"trials": trials}), "script")
    quoted = {row[0]: row[2] for row in found.cells}
    assert quoted["urllib3 (!)"] == "–"
    assert re.fullmatch(r"at least \d\.\d+", quoted["requests (!)"])
    assert "at least" in found.sentence


def test_the_cpu_bill_ranks_by_cpu_time():
    """In its own words: nobody is slower."""
    run = small_run(5, **{"http.client@threads": 4.0, "requests-session@threads": 1.0})
    plan, trials = run.experiment, [trial.model_copy(update={"workload": "delay"}) for trial in run.trials]
    arms = [arm.model_copy(update={"workload": "delay", "group": "delay"}) for arm in plan.arms]
    plan = plan.model_copy(update={"arms": arms, "workloads": {"delay": Workload(requests=1000)}})
    found = answer_of(run.model_copy(update={"experiment": plan, "trials": trials}), "cpu-threads")
    assert found.sentence.startswith("`requests-session@threads` needs the least CPU time of 2, ")
    assert "`http.client@threads` needs 4.00 (" in found.sentence
    assert found.sentence.endswith(" times as much.")
    assert [row[1] for row in found.cells] == ["least", "more"]


def test_no_difference_is_claimed_without_an_interval():
    """Of two rounds, nothing is decided."""
    found = answer_of(small_run(2, **{"http.client": 1.0, "requests": 9.0}), "script")
    assert found.sentence.endswith("; `requests` is undecided.")
    assert found.decided == (0, 1)


def test_many_strategies_are_counted_and_ten_are_shown():
    """More than five are not named; the table has ten, and says how many the map has beside them."""
    names = ("http.client", "requests", "urllib3", "httpx-client", "httplib2", "niquests", "pycurl", "httpx", "wreq",
             "pyqwest", "curl-cffi", "geventhttpclient")  # fmt: skip
    found = answer_of(small_run(5, **dict.fromkeys(names, 1.0)), "script")
    assert "; 11 others are equal within 5 %." in found.sentence
    assert (len(found.cells), found.left) == (10, 2)
    shown = atlas.shown_answers(small_run(5, **dict.fromkeys(names, 1.0)))
    assert "\n2 more, and all figures: [workload json](atlas.md#workload-json)." in shown


def test_a_trap_and_a_second_name_of_a_pair_are_no_advice():
    """They are on the map only, as is what another executor runs."""
    run = small_run(**{"requests": 2.0, "sync": 1.0, "trap-blocking-in-coroutine": 1.0, "requests@threads": 1.0})
    assert [row[0] for row in answer_of(run, "script").cells] == ["requests"]
    assert "#workload-delay" not in atlas.shown_answers(run)  # there is no such table
    assert all(f"\n| {name} | 1 |" in atlas.whole_map(run) for name in ("sync", "trap-blocking-in-coroutine"))


def test_http2_is_compared_with_http1_of_the_same_library():
    """In one sentence, with a ratio for each library in the table, and the connections of each."""
    walls = {
        "httpx-async@workers": 1.0,
        "httpx-async-h2@workers": 2.0,
        "punkreq@workers": 1.0,
        "punkreq-h2@workers": 0.5,
    }
    run = small_run(5, **walls)
    plan, trials = run.experiment, [trial.model_copy(update={"workload": "http2"}) for trial in run.trials]
    arms = [arm.model_copy(update={"workload": "http2", "group": "http2"}) for arm in plan.arms]
    plan = plan.model_copy(update={"arms": arms, "workloads": {"http2": Workload(requests=1000)}})
    found = answer_of(run.model_copy(update={"experiment": plan, "trials": trials}), "http2-or-http1")
    assert found.sentence == ("HTTP/2 is faster with `punkreq-h2@workers`; slower with `httpx-async-h2@workers`.")
    assert [row[:3] for row in found.cells] == [
        ["punkreq-h2@workers", "faster", "0.500 (0.500 to 0.500)"],
        ["httpx-async-h2@workers", "slower", "2.00 (2.00 to 2.00)"],
    ]


def test_the_map_has_spreads_cautions_and_what_is_left_out():
    """A table for each workload; the run's reasons, arms without a trial, and strategies that are listed since."""
    run = small_run(**{"http.client": 1.0, "requests": 4.0})
    failed = a_failed_trial("pycurl", "it broke", workload="json", arm="json pycurl", order=99)
    arms = [
        *run.experiment.arms,
        run.experiment.arms[0].model_copy(update={"name": "json pycurl", "strategy": "pycurl"}),
    ]
    plan = run.experiment.model_copy(update={"arms": arms, "unavailable_arms": {"json ab": "ab is not installed"}})
    found = atlas.whole_map(
        with_judgement(run.model_copy(update={"experiment": plan, "trials": [*run.trials, failed]}))
    )
    assert "\n1,000 requests, GET `/`, aiohttp upstream, route direct.\n" in found
    assert "| http.client | 1 | 980 (971 to 990) | 500 µs (500 µs to 500 µs) | 16.0 MiB | 1 | – |" in found
    assert r"- Left out: \`ab\`." in found
    assert "- No trial finished of: json pycurl." in found
    assert "- The machine could not run: json ab (ab is not installed)." in found
    (new,) = re.findall(r"^- Listed since, and not measured yet: (.+)\.$", found, re.MULTILINE)
    known = {"http.client", "requests", "pycurl", "ab"}
    assert {one.replace("\\", "") for one in new.split(", ")} == set(STRATEGIES) - known


def test_without_a_run_the_page_states_it(tmp_path):
    """And names the command that measures it."""
    assert atlas.stored(tmp_path / "atlas.json") is None
    assert "`scripts/findings atlas`" in atlas.UNMEASURED
    assert "atlas" not in runs()


@pytest.mark.skipif(not ATLAS.exists(), reason="the atlas is not measured yet")
def test_the_stored_run_is_whole_and_belongs_to_the_experiment():
    """In full form, with what its page does not show left out, and nothing in it of whose machine it was."""
    run, text = read_judged(ATLAS), content_of(ATLAS).decode()
    assert run.experiment.shortened == run.experiment.changed == []
    assert {trial.status for trial in run.trials} == {"done"}
    assert {arm.name for arm in run.experiment.arms} <= {arm.name for arm in PLAN.arms}
    assert {name: PLAN.workloads[name] for name in run.experiment.workloads} == run.experiment.workloads
    assert re.findall(r"/(?:home|root|tmp|Users|work)/", text) == []
    assert not set(BULKY) & set(json.loads(text)["trials"][0])
    assert not any(one.kind == "short-trials" for one in with_judgement(run).cautions)
