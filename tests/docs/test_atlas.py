"""The atlas: every listed strategy is in the experiment, and the page states what the run file gives."""

from __future__ import annotations

import json
import re

import pytest

from clientlab.experiments.file import bundled, read_plan
from clientlab.judging.judgement import read_judged, with_judgement
from clientlab.results.plan import Arm
from clientlab.results.regular_file import content_of
from clientlab.running.due import seconds_of
from clientlab.strategies import STRATEGIES
from clientlab.workload.workload import Workload
from clients.documents import a_failed_trial, a_run, a_trial
from findings import atlas
from findings.__main__ import BULKY
from findings.page import ATLAS, runs
from generate.atlas import WORK

PLAN = read_plan(bundled()["atlas"])


def test_every_listed_strategy_is_measured():
    """With each workload it is an arm, or a sentence of the run file gives the reason why not."""
    done = {(arm.workload, arm.strategy) for arm in PLAN.arms}
    assert {name for _, name in done} == set(STRATEGIES)
    for work in WORK:
        sentences = [one for one in PLAN.uncontrolled if one.startswith(f"Workload {work.name} leaves out, because ")]
        named = [name for one in sentences for name in one.rpartition(": ")[2].removesuffix(".").split(", ")]
        assert len(named) == len(set(named))
        assert {(work.name, name) for name in named} == {(work.name, name) for name in STRATEGIES} - done


def test_the_atlas_takes_no_more_than_25_minutes():
    """By the lab's own estimate, on two cores, with its three rounds."""
    assert PLAN.rounds == 3
    assert seconds_of(PLAN) <= 25 * 60


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


def answer_of(run, title: str) -> str:
    """The paragraph below a situation's heading."""
    (found,) = re.findall(rf"^### {re.escape(title)}\n\n(.+)$", atlas.answers(run), re.MULTILINE)
    return found


def test_an_answer_is_computed_from_the_run():
    """The fastest with its rate, those that cannot be told from it together, and the surely slower ones."""
    noisy = small_run(**{"http.client": 1.0, "urllib3": 1.0, "requests": 4.0, "httpx-client": 2.0})
    trials = [
        trial.model_copy(update={"wall_seconds": (1.3, 0.9, 1.1)[trial.round - 1]})
        if trial.strategy == "urllib3" else trial
        for trial in noisy.trials
    ]  # fmt: skip
    found = answer_of(noisy.model_copy(update={"trials": trials}), "A script that makes a few calls one after another")
    assert re.match(
        r"One request after the other, `http\.client` made the most requests per second, 980; not measurably slower: "
        r"`urllib3` \(!\)\. 2 of 4 were measurably slower: they took from 2\.00[^`]+ times \(`httpx-client`\) to 4\.00"
        r"[^`]+ times \(`requests`\) as long\. `http\.client` held the least memory, 16\.0 MiB; not measurably more: ",
        found,
    )
    assert found.endswith(" [Workload json](#workload-json) has all figures.")
    reversed_run = small_run(**{"http.client": 4.0, "urllib3": 2.0, "requests": 1.0, "httpx-client": 3.0})
    found = answer_of(reversed_run, "A script that makes a few calls one after another")
    assert "`requests` made the most requests per second, 980; all 3 others were measurably slower. 3 of 4" in found
    bill = answer_of(reversed_run, "The lowest CPU bill")
    assert (
        "`requests` took the least CPU time per request, 500 µs; all 3 others needed measurably more; the most, 4.00"
        in bill
    )


def test_no_difference_is_claimed_without_an_interval():
    """Of two rounds, all strategies are named together."""
    found = answer_of(
        small_run(2, **{"http.client": 1.0, "requests": 9.0}), "A script that makes a few calls one after another"
    )
    assert "not measurably slower: `requests`" in found
    assert "were measurably slower" not in found


def test_many_strategies_that_cannot_be_told_apart_are_counted():
    """More than five are not named; the table has them."""
    script = "A script that makes a few calls one after another"
    alike = dict.fromkeys(("http.client", "requests", "urllib3", "httpx-client", "httplib2", "niquests", "pycurl"), 1.0)
    assert "; none of the 6 others was measurably slower. " in answer_of(small_run(2, **alike), script)
    unlike = answer_of(small_run(**alike, httpx=9.0), script)
    assert "; 6 of the 7 others were not measurably slower. One was measurably slower" in unlike


def test_a_trap_and_a_second_name_of_a_pair_are_no_advice():
    """They are on the map only, as is what another executor runs."""
    run = small_run(**{"requests": 2.0, "sync": 1.0, "trap-blocking-in-coroutine": 1.0, "requests@threads": 1.0})
    found = answer_of(run, "A script that makes a few calls one after another")
    assert re.findall("`([^`]+)`", found) == ["requests", "requests"]
    assert "#workload-delay" not in atlas.answers(run)  # there is no such table
    assert all(f"\n| {name} | 1 |" in atlas.whole_map(run) for name in ("sync", "trap-blocking-in-coroutine"))


def test_http2_is_compared_with_http1_of_the_same_library():
    """In one sentence with a ratio for each library, and the connections of each."""
    walls = {
        "httpx-async@workers": 1.0,
        "httpx-async-h2@workers": 2.0,
        "punkreq@workers": 1.0,
        "punkreq-h2@workers": 0.5,
    }
    run = small_run(**walls)
    plan, trials = run.experiment, [trial.model_copy(update={"workload": "http2"}) for trial in run.trials]
    arms = [arm.model_copy(update={"workload": "http2", "group": "http2"}) for arm in plan.arms]
    plan = plan.model_copy(update={"arms": arms, "workloads": {"http2": Workload(requests=1000)}})
    found = answer_of(run.model_copy(update={"experiment": plan, "trials": trials}), "HTTP/2")
    assert (
        "over HTTP/2 is measurably more with `httpx-async-h2@workers` (2.00 (2.00 to 2.00) times); measurably less "
        "with `punkreq-h2@workers` (0.500 (0.500 to 0.500) times)."
    ) in found
    assert "Connections opened: 1 by `punkreq-h2@workers` and `httpx-async-h2@workers`." in found


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
