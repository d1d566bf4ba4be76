"""The claims of a run: their verdicts, and the text about them."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.judging.judgement import read_judged, with_judgement
from clientlab.reports.sweeps import sweeps_of
from clientlab.results.document import Run
from clientlab.results.plan import Claim, Source
from clientlab.results.store import Store
from clientlab.results.trial import Trial
from clients.documents import (
    a_failed_trial,
    a_run,
    a_trial,
    an_arm,
    quantiles,
    rounds,
    with_changes,
)


def fast(**changes) -> list[Trial]:
    """Four rounds."""
    return rounds("fast", 1.0, 1.01, 0.99, 1.0, **changes)


def slow(**changes) -> list[Trial]:
    """Four rounds, of twice the time."""
    return rounds("slow", 2.0, 2.01, 2.02, 1.99, **changes)


def a_claim(**changes) -> Claim:
    """That fast takes less than slow."""
    usual = {"name": "it", "text": "It is so", "kind": "less", "a": "fast", "b": "slow"}
    return Claim(**usual | changes)


def judged(claim: Claim, *trials: Trial, **changes):
    """The claim as judged in a run of these trials."""
    run = a_run(*trials, claims=[claim], **changes)
    (found,) = with_judgement(run).claims
    return found


def test_a_claim_has_its_verdict_its_ratio_and_what_was_measured():
    source = Source(title="T", authors="A", date="2020")
    claim = a_claim(published="3 s and 1 s")
    found = judged(claim, *fast(), *slow(), source=source)
    assert found.verdict == "supported"
    assert found.rounds == 4
    assert found.settles is None
    assert found.ratio == pytest.approx(1.995, rel=1e-3)
    assert found.interval[0] < 1.995 < found.interval[1] < 2.05
    assert found.text == "It is so"
    assert found.published == "3 s and 1 s"
    assert found.source == "A, 2020"
    assert found.measured == "slow has 2.00 times the wall time of fast"


def test_a_claim_shows_the_cautions_about_its_own_arms_and_figure():
    short = slow(wall_seconds=0.1)
    other = rounds("other", 0.1, 0.1, 0.1, 0.1)
    assert judged(a_claim(), *fast(), *short).cautions == ["short-trials"]
    assert judged(a_claim(), *fast(), *slow(), *other).cautions == []
    few = [*fast(requests=50), *slow(requests=50)]
    assert judged(a_claim(figure="p99"), *few).cautions == ["few-requests"]
    assert judged(a_claim(), *few).cautions == []


def test_a_claim_about_an_arm_that_received_other_bytes_is_open():
    """It kept the bodies compressed, which the other one decoded."""
    found = judged(a_claim(), *fast(bytes_received=1000), *slow(bytes_received=5000))
    assert found.verdict == "inconclusive"
    assert found.ratio is None
    assert found.settles is None
    assert found.measured.startswith(
        "fast is not compared: its client received 1 bytes per request, and slow 5;"
    )


@pytest.mark.parametrize(
    ("figure", "changes", "verdict"),
    [
        ("requests_per_second", {}, "contradicted"),
        ("p99", {"latency_seconds": quantiles(p99=9.0)}, "supported"),
        ("elapsed", {}, "inconclusive"),  # nobody measured it
    ],
)
def test_a_claim_may_be_about_any_figure(figure, changes, verdict):
    found = judged(a_claim(figure=figure), *fast(), *slow(**changes))
    assert found.figure == figure
    assert found.verdict == verdict


BAND = {"kind": "ratio", "band": (1.2, 2.0)}


@pytest.mark.parametrize(
    ("claim", "pace", "jitter", "changes", "settles"),
    [
        ({}, 1.0, 0.004, {}, "no number of rounds"),
        ({}, 1.01, 0.05, {}, "about "),
        ({}, 1.01, 0.8, {}, "more than 100 rounds"),
        (BAND, 1.22, 0.05, {}, "about "),
        (BAND, 1.2, 0.004, {"precision": 0.03}, "no number of rounds"),
    ],
)
def test_an_open_claim_says_whether_rounds_would_settle_it(
    claim, pace, jitter, changes, settles
):
    """Slow takes `pace` times as long as fast, give or take the jitter."""
    walls = [pace, pace * (1 + jitter), pace * (1 - jitter)] * 2
    trials = [*rounds("fast", *[1.0] * 6), *rounds("slow", *walls)]
    found = judged(a_claim(**claim), *trials, **changes)
    assert found.verdict == "inconclusive"
    assert found.settles.startswith(settles)


def jittered(wall: float, place: int) -> list[float]:
    """Four wall times that differ by a few thousandths."""
    return [wall * (1 + 0.002 * ((number + place) % 3)) for number in (1, 2, 3, 4)]


def a_sweep(walls: dict[int, float], written=None):
    """A claim about arms along the axis c, in the order written, four rounds of them,
    and the arms.
    """
    arms = [
        an_arm("s", name=f"s[c={place}]", axes={"c": place}, sweep="s")
        for place in written or walls
    ]
    trials = []
    for place, wall in walls.items():
        trials += rounds("s", *jittered(wall, place), arm=f"s[c={place}]")
    names = [arm.name for arm in arms]
    return a_claim(kind="optimum", a=None, b=None, arms=names), trials, arms


@pytest.mark.parametrize("written", [(1, 8, 30, 100, 300), (300, 30, 1, 100, 8)])
def test_a_sweep_has_a_best_place_and_a_knee(written):
    """Numbers are in order of size, however the experiment lists them."""
    walls = {1: 9.0, 8: 2.0, 30: 1.02, 100: 1.0, 300: 1.5}
    claim, trials, arms = a_sweep(walls, written)
    found = judged(claim, *trials, arms=arms)
    assert found.verdict == "supported"
    assert found.best == 100
    assert found.knee == 30
    assert found.knee_between == (30, 30)


def test_a_claim_and_the_chart_name_the_same_knee():
    """One slow round leaves its place open. A fast trial with errors does not count."""
    claim, trials, arms = a_sweep({1: 9.0, 8: 1.03, 30: 1.0, 100: 1.5})
    second_of_8 = 5
    trials[second_of_8] = with_changes(trials[second_of_8], wall_seconds=1.4)
    trials.append(a_trial("s", 5, 0.01, arm="s[c=1]", errors={"reset": 999}))
    found = judged(claim, *trials, arms=arms)
    (sweep,) = sweeps_of(a_run(*trials, claims=[claim], arms=arms))
    (curve,) = sweep.curves
    assert found.best == 30
    assert found.knee == 8
    assert curve.points[curve.turn.knee].value == 8
    assert found.knee_between == (8, 30)
    assert curve.knee is None


@pytest.mark.parametrize(
    ("gap", "verdict"), [(1.5, "supported"), (4.5, "contradicted")]
)
def test_a_gap_can_be_narrower_than_another(gap, verdict):
    """The ratio of the two ratios is paired by round, so the luck of a round does not
    matter.
    """
    luck = (1.0, 1.4, 0.8, 1.1)
    trials = []
    for place, (name, wall) in enumerate((("a", 1), ("b", gap), ("c", 2), ("d", 6))):
        walls = np.multiply(jittered(wall, place), luck)
        trials += rounds(name, *walls)

    def narrower(c: str, d: str):
        return judged(a_claim(kind="narrower", a="a", b="b", c=c, d=d), *trials)

    found = narrower("c", "d")
    assert found.verdict == verdict
    assert found.rounds == 4
    assert found.ratio == pytest.approx(3.0 / gap, rel=0.02)
    assert found.measured.startswith("d over c in wall time is ")
    assert narrower("a", "d").rounds == 4
    lame = narrower("c", "e")
    assert lame.verdict == "inconclusive"
    assert lame.settles == "trials of e without errors"


def test_a_claim_about_an_arm_that_the_machine_could_not_run_is_inconclusive():
    lacks = "ab is not installed; apt-get install apache2-utils"
    found = judged(a_claim(), *fast(), unavailable_arms={"slow": lacks})
    assert found.verdict == "inconclusive"
    assert found.ratio is None
    assert found.rounds == 0
    assert lacks in found.measured


NAME = "20240102-000000-run-cccc"


def killed() -> Run:
    """What is left of a run with a claim, whose process was killed in its
    fourth round.
    """
    trials = []
    for number in (1, 2, 3):
        trials.append(a_trial("fast", number, 1 + number / 100))
        trials.append(a_trial("slow", number, 2 + number / 100))
    failed = a_failed_trial("fast", round=4)
    run = a_run(*trials, failed, name=NAME, claims=[a_claim()])
    return run.updated(status="running")


@pytest.mark.parametrize(
    "stale", [[], with_judgement(killed().updated(trials=[])).claims]
)
def test_a_run_that_was_killed_is_judged_when_it_is_read(stale, tmp_path):
    """Whatever verdicts its file holds."""
    store = Store(tmp_path)
    store.claim(NAME)
    store.save(killed().updated(claims=stale, trials=killed().trials[:2]))
    for trial in killed().trials[2:]:
        store.append(NAME, trial)
    read = read_judged(store.find("last"))
    (claim,) = read.claims
    assert claim.verdict == "supported"
    assert claim.rounds == 3
    (caution,) = read.cautions
    assert caution.kind == "failed-trials"
    expected = killed().updated(status="interrupted")
    assert read.updated(claims=[], cautions=[]) == expected
