"""The claims of a run: their verdicts, and the text about them."""

from __future__ import annotations

import pytest

from clientlab.judging.judgement import read_judged, with_judgement
from clientlab.reports.charts import sweeps_of
from clientlab.results.document import Run
from clientlab.results.plan import Arm, Claim, Source
from clientlab.results.store import Store
from clients.documents import a_failed_trial, a_run, a_trial, quantiles, with_changes

WALLS = {"fast": (1.0, 1.01, 0.99, 1.0), "slow": (2.0, 2.01, 2.02, 1.99)}


def trials(**changes):
    """Four rounds of both arms."""
    return [
        a_trial(name, number, wall, **changes)
        for name, walls in WALLS.items()
        for number, wall in enumerate(walls, start=1)
    ]


def a_claim(**changes) -> Claim:
    """That fast takes less than slow."""
    return Claim(
        **(
            {"name": "it", "text": "It is so", "kind": "less", "a": "fast", "b": "slow"}
            | changes
        )
    )


def verdict_of(claim: Claim, *of, **changes):
    """The claim as judged in a run of these trials."""
    (found,) = with_judgement(
        a_run(*(of or trials()), claims=[claim], **changes)
    ).claims
    return found


def test_a_claim_has_its_verdict_its_ratio_and_what_was_measured():
    found = verdict_of(
        a_claim(published="3 s and 1 s"),
        source=Source(title="T", authors="A", date="2020"),
    )
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
    short = [
        with_changes(trial, wall_seconds=0.1) if trial.planned.arm == "slow" else trial
        for trial in trials()
    ]
    other = [a_trial("other", number, 0.1) for number in range(1, 5)]
    assert verdict_of(a_claim(), *short).cautions == ["short-trials"]
    assert verdict_of(a_claim(), *trials(), *other).cautions == []
    few = [with_changes(trial, requests=50) for trial in trials()]
    assert verdict_of(a_claim(figure="p99"), *few).cautions == ["few-requests"]
    assert verdict_of(a_claim(), *few).cautions == []


def test_a_claim_about_an_arm_that_received_other_bytes_is_open():
    """It kept the bodies compressed, which the other one decoded."""
    of = [
        with_changes(
            trial, bytes_received=1000 if trial.planned.arm == "fast" else 5000
        )
        for trial in trials()
    ]
    found = verdict_of(a_claim(), *of)
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
    of = [
        with_changes(trial, **changes) if trial.planned.arm == "slow" else trial
        for trial in trials()
    ]
    found = verdict_of(a_claim(figure=figure), *of)
    assert found.figure == figure
    assert found.verdict == verdict


def two_arms(b: float, jitter: float = 0.004):
    """Six rounds of two arms, of which slow takes `b` times as long as fast, give or
    take the jitter.
    """
    return [
        a_trial(name, number, wall * (1 + jitter * (number % 3 - 1) * at))
        for at, (name, wall) in enumerate((("fast", 1.0), ("slow", b)))
        for number in range(1, 7)
    ]


@pytest.mark.parametrize(
    ("claim", "of", "changes", "settles"),
    [
        ({}, two_arms(1.0), {}, "no number of rounds"),
        ({}, two_arms(1.01, 0.05), {}, "about "),
        ({}, two_arms(1.01, 0.8), {}, "more than 100 rounds"),
        ({"kind": "ratio", "band": (1.2, 2.0)}, two_arms(1.22, 0.05), {}, "about "),
        (
            {"kind": "ratio", "band": (1.2, 2.0)},
            two_arms(1.2),
            {"precision": 0.03},
            "no number of rounds",
        ),
    ],
)
def test_an_open_claim_says_whether_rounds_would_settle_it(claim, of, changes, settles):
    found = verdict_of(a_claim(**claim), *of, **changes)
    assert found.verdict == "inconclusive"
    assert found.settles.startswith(settles)


def a_sweep(walls: dict[int, float], written=None):
    """Arms along the axis c, in the order written, and four rounds of them."""
    arms = [
        Arm(
            name=f"s[c={place}]",
            strategy="s",
            upstream="aiohttp",
            route="direct",
            workload="workload",
            axes={"c": place},
            sweep="s",
        )
        for place in written or walls
    ]
    of = [
        a_trial(
            "s",
            number,
            wall * (1 + 0.002 * ((number + place) % 3)),
            arm=f"s[c={place}]",
        )
        for place, wall in walls.items()
        for number in (1, 2, 3, 4)
    ]
    return (
        a_claim(kind="optimum", a=None, b=None, arms=[arm.name for arm in arms]),
        of,
        arms,
    )


@pytest.mark.parametrize("written", [(1, 8, 30, 100, 300), (300, 30, 1, 100, 8)])
def test_a_sweep_has_a_best_place_and_a_knee(written):
    """Numbers are in order of size, however the experiment lists them."""
    claim, of, arms = a_sweep({1: 9.0, 8: 2.0, 30: 1.02, 100: 1.0, 300: 1.5}, written)
    found = verdict_of(claim, *of, arms=arms)
    assert found.verdict == "supported"
    assert found.best == 100
    assert found.knee == 30
    assert found.knee_between == (30, 30)


def test_a_claim_and_the_chart_name_the_same_knee():
    """One slow round leaves its place open. A fast trial with errors does not count."""
    claim, of, arms = a_sweep({1: 9.0, 8: 1.03, 30: 1.0, 100: 1.5})
    of = [
        with_changes(trial, wall_seconds=1.4)
        if (trial.planned.arm, trial.planned.round) == ("s[c=8]", 2)
        else trial
        for trial in of
    ]
    of.append(a_trial("s", 5, 0.01, arm="s[c=1]", errors={"reset": 999}))
    run = a_run(*of, claims=[claim], arms=arms)
    (found,) = with_judgement(run).claims
    ((curve,),) = (sweep.curves for sweep in sweeps_of(run))
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
    walls = {"a": 1.0, "b": gap, "c": 2.0, "d": 6.0}
    luck = {1: 1.0, 2: 1.4, 3: 0.8, 4: 1.1}
    of = [
        a_trial(name, number, wall * luck[number] * (1 + 0.002 * ((number + at) % 3)))
        for at, (name, wall) in enumerate(walls.items())
        for number in luck
    ]
    found = verdict_of(a_claim(kind="narrower", a="a", b="b", c="c", d="d"), *of)
    assert found.verdict == verdict
    assert found.rounds == 4
    assert found.ratio == pytest.approx(3.0 / gap, rel=0.02)
    assert found.measured.startswith("d over c in wall time is ")
    assert (
        verdict_of(a_claim(kind="narrower", a="a", b="b", c="a", d="d"), *of).rounds
        == 4
    )
    lame = verdict_of(a_claim(kind="narrower", a="a", b="b", c="c", d="e"), *of)
    assert lame.verdict == "inconclusive"
    assert lame.settles == "trials of e without errors"


def test_a_claim_about_an_arm_that_the_machine_could_not_run_is_inconclusive():
    lacks = "ab is not installed; apt-get install apache2-utils"
    found = verdict_of(a_claim(), *trials()[:4], unavailable_arms={"slow": lacks})
    assert found.verdict == "inconclusive"
    assert found.ratio is None
    assert found.rounds == 0
    assert lacks in found.measured


NAME = "20240102-000000-run-cccc"


def killed() -> Run:
    """What is left of a run with a claim, whose process was killed in its
    fourth round.
    """
    of = [
        a_trial(name, number, wall + number / 100, order=2 * number - 2 + place)
        for number in (1, 2, 3)
        for place, (name, wall) in enumerate((("fast", 1.0), ("slow", 2.0)))
    ]
    run = a_run(
        *of, a_failed_trial("fast", round=4, order=6), name=NAME, claims=[a_claim()]
    )
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
    assert [(claim.verdict, claim.rounds) for claim in read.claims] == [
        ("supported", 3)
    ]
    assert [caution.kind for caution in read.cautions] == ["failed-trials"]
    expected = killed().updated(status="interrupted")
    assert read.updated(claims=[], cautions=[]) == expected
