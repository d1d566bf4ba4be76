"""The claims of a run, from its trials: figures, verdicts, and what is said of them."""

from __future__ import annotations

import pytest

from clientlab.judging.claim_verdicts import judged
from clientlab.reports.charts.sweeps import sweeps_of
from clientlab.results.plan import Arm, Claim, Source
from clients.documents import a_failed_trial, a_run, a_trial, quantiles

WALLS = {"fast": (1.0, 1.01, 0.99, 1.0), "slow": (2.0, 2.01, 2.02, 1.99)}


def trials(**changes):
    """Four rounds of both arms."""
    return [a_trial(name, number, wall, **changes) for name, walls in WALLS.items()
            for number, wall in enumerate(walls, start=1)]  # fmt: skip


def a_claim(**changes) -> Claim:
    """That fast takes less than slow."""
    return Claim(**({"name": "it", "text": "It is so", "kind": "less", "a": "fast", "b": "slow"} | changes))


def verdict_of(claim: Claim, *of, **changes):
    """The claim as judged in a run of these trials."""
    (found,) = judged(a_run(*(of or trials()), claims=[claim], **changes))
    return found


def test_a_claim_has_its_verdict_its_ratio_and_what_was_measured():
    """The ratio is b's over a's; text and published figure are the experiment's."""
    found = verdict_of(a_claim(published="3 s and 1 s"), source=Source(title="T", authors="A", date="2020"))
    assert (found.verdict, found.rounds, found.settles) == ("supported", 4, None)
    assert found.ratio == pytest.approx(1.995, rel=1e-3)
    assert found.interval[0] < 1.995 < found.interval[1] < 2.05
    assert (found.text, found.published, found.source) == ("It is so", "3 s and 1 s", "A, 2020")
    assert found.measured == "slow has 2.00 times the wall time of fast"


def test_a_claim_shows_the_cautions_about_its_own_arms():
    """A verdict that rests on short trials is marked; a caution about another arm does not mark it."""
    short = [trial.model_copy(update={"wall_seconds": 0.1}) if trial.arm == "slow" else trial for trial in trials()]
    other = [a_trial("other", number, 0.1) for number in range(1, 5)]
    assert verdict_of(a_claim(), *short).cautions == ["short-trials"]
    assert verdict_of(a_claim(), *trials(), *other).cautions == []


@pytest.mark.parametrize(("figure", "cautions"), [("p99", ["few-requests"]), ("wall_seconds", []), ("cpu", [])])
def test_a_caution_about_percentiles_marks_claims_about_percentiles_only(figure, cautions):
    """With 50 requests, p99 is the longest of them; the wall time is what it is."""
    few = [trial.model_copy(update={"requests": 50}) for trial in trials()]
    assert verdict_of(a_claim(figure=figure), *few).cautions == cautions


def test_a_control_has_no_source():
    """It is the lab's, and not the article's."""
    assert verdict_of(a_claim(control=True), source=Source(title="T", authors="A", date="2020")).source is None


@pytest.mark.parametrize(
    ("figure", "changes", "verdict"),
    [
        ("wall_seconds", {}, "supported"),
        ("requests_per_second", {}, "contradicted"),
        ("p50", {"latency_seconds": quantiles(p50=9.0)}, "supported"),
        ("p99", {"latency_seconds": quantiles(p99=9.0)}, "supported"),
        ("cpu_seconds", {"cpu_seconds": 9.0}, "supported"),
        ("peak_rss_bytes", {"peak_rss_bytes": 1 << 40}, "supported"),
        ("memory", {"peak_pss_bytes": 1 << 40}, "supported"),
        ("connections_opened", {"connections_opened": 1000}, "supported"),
        ("elapsed", {}, "inconclusive"),
    ],
)
def test_every_figure_can_be_compared(figure, changes, verdict):
    """One that was not measured leaves the claim open, and says which arms lack it."""
    of = [trial.model_copy(update=changes) if trial.arm == "slow" else trial for trial in trials()]
    found = verdict_of(a_claim(figure=figure), *of)
    assert (found.figure, found.verdict) == (figure, verdict)
    if verdict == "inconclusive":
        assert found.settles == "trials of fast, slow without errors"


def test_trials_with_errors_are_left_out():
    """They did less work: with one such round of four, three are compared."""
    first, *others = trials()
    found = verdict_of(a_claim(), first.model_copy(update={"errors": {"reset": 1}, "wall_seconds": 0.001}), *others)
    assert (found.verdict, found.rounds) == ("supported", 3)


def test_an_arm_that_always_fails_leaves_the_claim_open():
    """A claim about an arm that always fails is inconclusive and names the arm."""
    found = verdict_of(a_claim(), *trials()[:4], a_failed_trial("slow"))
    assert (found.verdict, found.ratio, found.rounds) == ("inconclusive", None, 0)
    assert found.settles == "trials of slow without errors"


def test_few_rounds_are_inconclusive_and_say_how_many_are_needed():
    """Two rounds have a ratio and no interval."""
    found = verdict_of(a_claim(), *[trial for trial in trials() if trial.round < 3])
    assert (found.verdict, found.interval, found.rounds) == ("inconclusive", None, 2)
    assert found.settles == "about 3 rounds at this spread (--rounds 3)"


def two_arms(b: float, jitter: float = 0.004):
    """Six rounds of two arms, of which slow takes `b` times as long as fast, give or take the jitter."""
    return [a_trial(name, number, wall * (1 + jitter * (number % 3 - 1) * at))
            for at, (name, wall) in enumerate((("fast", 1.0), ("slow", b))) for number in range(1, 7)]  # fmt: skip


@pytest.mark.parametrize(
    ("claim", "of", "changes", "settles"),
    [
        ({}, two_arms(1.0), {}, "no number of rounds: there is no difference of 3 %, and more rounds could"),
        ({}, two_arms(1.01, 0.05), {}, "about 28 rounds at this spread (--rounds 28)"),
        ({}, two_arms(1.01, 0.8), {}, "more than 100 rounds at this spread: not worth it"),
        ({"kind": "ratio", "band": (1.2, 2.0)}, two_arms(1.2), {}, "more than 100 rounds at this spread: not worth it"),
        ({"kind": "ratio", "band": (1.2, 2.0)}, two_arms(1.22, 0.05), {}, "about "),
        ({"kind": "ratio", "band": (1.2, 2.0)}, two_arms(1.2), {"precision": 0.03},
         "no number of rounds: the ratio lies on the limit of the band, to the requested precision"),
        ({"kind": "ratio", "band": (1.2, 2.0)}, two_arms(1.25, 0.1), {"precision": 0.03}, "about "),
    ],
)  # fmt: skip
def test_an_open_claim_says_whether_rounds_would_settle_it(claim, of, changes, settles):
    """Or that what they could still show counts for nothing, or is finer than the precision that was asked for."""
    found = verdict_of(a_claim(**claim), *of, **changes)
    assert found.verdict == "inconclusive"
    assert found.settles.startswith(settles)


def test_a_spread_that_is_alike_is_settled():
    """If neither arm varies twice as much as the other, the claim states that no number of rounds would settle it."""
    of = [a_trial(name, number, 1 + 0.05 * ((number * step) % 7))
          for name, step in (("fast", 3), ("slow", 5)) for number in range(1, 85)]  # fmt: skip
    found = verdict_of(a_claim(kind="spread"), *of)
    assert found.verdict == "inconclusive"
    assert found.settles.startswith("no number of rounds: neither arm varies 2 times as much as the other, and ")


def a_sweep(walls: dict[int, float], written=None):
    """Arms along the axis c, in the order written, and four rounds of them."""
    arms = [Arm(name=f"s[c={place}]", strategy="s", upstream="aiohttp", route="direct", workload="workload",
                axes={"c": place}, sweep="s") for place in written or walls]  # fmt: skip
    of = [
        a_trial("s", number, wall * (1 + 0.002 * ((number + place) % 3)), arm=f"s[c={place}]")
        for place, wall in walls.items()
        for number in (1, 2, 3, 4)
    ]
    return a_claim(kind="optimum", a=None, b=None, arms=[arm.name for arm in arms]), of, arms


@pytest.mark.parametrize("written", [(1, 8, 30, 100, 300), (300, 30, 1, 100, 8)])
def test_a_sweep_has_a_best_place_and_a_knee(written):
    """As its axis has them, by size, and it is said that the interval allows for the choice of the least."""
    claim, of, arms = a_sweep({1: 9.0, 8: 2.0, 30: 1.02, 100: 1.0, 300: 1.5}, written)
    found = verdict_of(claim, *of, arms=arms)
    assert (found.verdict, found.best, found.knee) == ("supported", 100, 30)
    assert found.knee_between == (30, 30)
    assert found.measured.startswith("least wall time at 100, knee at 30; the better end of 1 and 300")
    assert found.measured.endswith(" the least between them (interval of at least 95 % for the best of these 3)")


def test_a_plateau_to_the_end_of_a_sweep_is_settled():
    """No optimum between the ends could matter."""
    claim, of, arms = a_sweep({1: 9.0, 8: 2.0, 30: 1.0, 100: 1.0, 300: 1.0})
    found = verdict_of(claim, *of, arms=arms)
    assert (found.verdict, found.knee) == ("inconclusive", 30)
    assert found.settles.startswith("no number of rounds: no point between the ends is 3 % less than the better end")


def test_a_claim_and_the_chart_name_the_same_knee():
    """One slow round does not move it, but leaves its place open; a fast trial with errors does not count."""
    claim, of, arms = a_sweep({1: 9.0, 8: 1.03, 30: 1.0, 100: 1.5})
    of = [trial.model_copy(update={"wall_seconds": 1.4}) if (trial.arm, trial.round) == ("s[c=8]", 2) else trial
          for trial in of]  # fmt: skip
    of.append(a_trial("s", 5, 0.01, arm="s[c=1]", errors={"reset": 999}))
    run = a_run(*of, claims=[claim], arms=arms)
    (found,) = judged(run)
    ((curve,),) = (sweep.curves for sweep in sweeps_of(run))
    assert (found.best, found.knee, curve.knee.value) == (30, 8, 8)
    assert found.knee_between == (8, 30)
    assert curve.summary.startswith("s: least typical time 1.00 s at 30, knee between 8 and 30 (95 %)")
    assert not curve.knee_is_sure


def test_no_knee_is_claimed_where_the_rounds_rule_out_no_point():
    """Nor with too few rounds for an interval."""
    flat, of, arms = a_sweep({1: 1.02, 8: 1.01, 30: 1.0, 100: 1.01})
    restless = [trial.model_copy(update={"wall_seconds": trial.wall_seconds * (1 + 0.3 * (trial.round % 2))})
                if trial.arm != "s[c=1]" else trial for trial in of]  # fmt: skip
    found = verdict_of(flat, *restless, arms=arms)
    assert (found.knee, found.knee_between) == (None, (1, 100))
    assert "knee unknown: these rounds leave every point of the sweep for it" in found.measured
    few = verdict_of(flat, *(trial for trial in of if trial.round < 3), arms=arms)
    assert (few.knee, few.knee_between) == (None, None)
    assert "knee unknown: an interval needs 3 rounds" in few.measured


def test_a_run_that_asked_for_a_precision_has_wider_intervals():
    """Its rounds ended when the intervals looked narrow."""
    planned, sequential = (verdict_of(a_claim(), precision=share).interval for share in (None, 0.03))
    assert sequential[0] < planned[0] < planned[1] < sequential[1]


@pytest.mark.parametrize(("gap", "verdict"), [(1.5, "supported"), (4.5, "contradicted")])
def test_a_gap_can_be_narrower_than_another(gap, verdict):
    """The ratio is that of the two ratios, paired by round, whatever all four share of a round's luck."""
    walls = {"a": 1.0, "b": gap, "c": 2.0, "d": 6.0}
    luck = {1: 1.0, 2: 1.4, 3: 0.8, 4: 1.1}
    of = [
        a_trial(name, number, wall * luck[number] * (1 + 0.002 * ((number + at) % 3)))
        for at, (name, wall) in enumerate(walls.items())
        for number in luck
    ]
    found = verdict_of(a_claim(kind="narrower", a="a", b="b", c="c", d="d"), *of)
    assert (found.verdict, found.rounds) == (verdict, 4)
    assert found.ratio == pytest.approx(3.0 / gap, rel=0.02)
    assert found.measured.startswith("d over c in wall time is ")
    lame = verdict_of(a_claim(kind="narrower", a="a", b="b", c="c", d="e"), *of)
    assert (lame.verdict, lame.settles) == ("inconclusive", "trials of e without errors")


def test_two_gaps_may_have_an_arm_in_common():
    """As where both are to the same server."""
    walls = {"a": 1.0, "b": 2.0, "c": 0.5}
    of = [a_trial(name, number, wall + number / 1000) for name, wall in walls.items() for number in (1, 2, 3)]
    found = verdict_of(a_claim(kind="narrower", a="a", b="b", c="c", d="b"), *of)
    assert (found.verdict, found.ratio) == ("supported", pytest.approx(2.0, rel=0.01))


@pytest.mark.parametrize(
    "claim",
    [a_claim(), a_claim(kind="narrower", c="fast", d="other"),
     a_claim(kind="optimum", a=None, b=None, arms=["slow", "slow[at=2]", "slow[at=3]"])],
)  # fmt: skip
def test_a_claim_about_an_arm_that_the_machine_could_not_run_is_inconclusive(claim):
    """With the reason, and without a number of rounds: no round of this machine would settle it."""
    lacks = "ab is not installed; apt-get install apache2-utils"
    missing = dict.fromkeys(["slow", "slow[at=2]", "slow[at=3]"], lacks)
    others = [*trials()[:4], *(a_trial("other", number) for number in range(1, 5))]
    found = verdict_of(claim, *others, unavailable_arms=missing)
    assert (found.verdict, found.ratio, found.rounds) == ("inconclusive", None, 0)
    assert found.measured.startswith("the machine could not run slow")
    assert found.measured.endswith(f"({lacks})")
    assert found.settles == "a run on a machine that has what is missing"
