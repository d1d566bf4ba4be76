"""What follows from the trials of a run: its claim results, its cautions, and the arms
that need further rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from clientlab import units
from clientlab.judging import ranking
from clientlab.judging.cautions import cautions_of
from clientlab.judging.steadiness import may_become_steady
from clientlab.results.document import Caution, ClaimResult, Run
from clientlab.results.figures import BY_KEY, of_claim
from clientlab.results.plan import Arm, AxisValue, Claim
from clientlab.results.store import is_held, read_run
from clientlab.statistics import decisions
from clientlab.statistics.decisions import DECIDED_CONFIDENCE, Finding
from clientlab.statistics.ratios import (
    FEWEST_ROUNDS_OF_SPREAD,
    Ratio,
    paired_ratio,
    spread_ratio,
)
from clientlab.statistics.simultaneous import Value, sort_values
from clientlab.trial.result import Trial


def with_judgement(run: Run) -> Run:
    """Return the run with the claim results and cautions that follow from its present
    trials.
    """
    evidence, cautions = ClaimEvidence(run), cautions_of(run)
    claims = [_judge(evidence, claim, cautions) for claim in run.experiment.claims]
    return run.model_copy(update={"claims": claims, "cautions": cautions})


def read_judged(path: Path) -> Run:
    """Read a run file, and judge the run unless it has ended: then the file holds its
    judgement.

    Raise LabError.

    A run that is not finished, and that no process measures, is interrupted.
    """
    run = read_run(path)
    if run.status == "running" and not is_held(path.parent):
        run = run.model_copy(update={"status": "interrupted"})
    is_judged = run.status in ("done", "incomplete") and (
        run.claims or not run.experiment.claims
    )
    return run if is_judged else with_judgement(run)


def undecided_arms(run: Run, confidence: float = DECIDED_CONFIDENCE) -> set[str]:
    """Return the arms of comparisons that further rounds may decide: a run with a
    budget measures only these further.

    The comparisons are those with the fastest of a group, with the baseline, and
    between environments, servers, links and routes, and those of claims. An arm whose
    rate is not steady yet has none, but may get some. `confidence`: of their intervals.
    A look after each round does little harm at 99.9 % (Haybittle 1971, Peto et al.
    1976).
    """
    baseline, names = (
        run.experiment.baseline,
        {ranking.arm_key(arm): arm.name for arm in run.experiment.arms},
    )
    compared: list[
        tuple[Ratio | None, str, str]
    ] = []  # a ratio, and the arms that it compares
    for group, standings in ranking.rank_arms(run, confidence).items():
        for one in standings:
            name = names[group, one.name]
            if not one.fastest:
                compared.append((one.ratio, name, names[group, one.reference]))
            if baseline is not None:
                compared.append((one.to_baseline, name, baseline))
    for part in ranking.PARTS:
        compared += [
            (one.time, one.arm.name, one.base.name)
            for one in ranking.contrasts_by(part, run, confidence)
        ]
    pairs = [
        pair
        for ratio, *pair in compared
        if ratio and decisions.decide(ratio).word == "undecided"
    ]
    undecided = {name for pair in pairs for name in pair}
    if run.experiment.slices is None:
        every = [arm.name for arm in run.experiment.arms]
        undecided |= {
            arm for arm in every if may_become_steady(run.finished_trials_of(arm))
        }
    evidence = ClaimEvidence(run)
    for claim in run.experiment.claims:
        finding = evidence.finding(claim, confidence)
        if (
            finding.verdict == "inconclusive"
            and finding.ratio is not None
            and not finding.negligible
        ):
            undecided |= arms_of_claim(claim)
    return undecided


def knee_text(axis: Sequence[Value], between: tuple[int, int] | None) -> str:
    """Return where the knee is.

    `between`: indices of the first and the last value that may be the knee, if known.
    """
    if between is None:
        return "knee unknown: an interval needs 3 rounds"
    first, last = between
    if first == last:
        return f"knee at {axis[first]}"
    if not _shows_knee(axis, between):
        return "knee unknown: these rounds rule out no point of the sweep"
    return f"knee between {axis[first]} and {axis[last]} (95 %)"


def _shows_knee(axis: Sequence[Value], between: tuple[int, int] | None) -> bool:
    """Return whether the rounds rule out at least one point of the sweep."""
    return between is not None and between[1] - between[0] + 1 < len(axis)


def arms_of_claim(claim: Claim) -> frozenset[str]:
    """Return the names of the arms that a claim is about."""
    return frozenset([*_named_arms(claim), *claim.arms])


def _named_arms(claim: Claim) -> list[str]:
    return [name for name in (claim.a, claim.b, claim.c, claim.d) if name is not None]


class ClaimEvidence:
    """The trials of a run, as claims need them.

    What claims about the same figure share is computed once.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.arms: dict[str, Arm] = {arm.name: arm for arm in run.experiment.arms}
        self._compare = cache(
            lambda key, confidence: ranking.compare_by(run, BY_KEY[key], confidence)
        )

    def finding(self, claim: Claim, confidence: float) -> Finding:
        """Return what the trials say about a claim.

        It is open if the machine could not run one of its arms.
        """
        if self.missing_arms(claim):
            return Finding("inconclusive", None)
        if claim.kind in {"less", "ratio"}:
            figure = of_claim(claim.figure)
            pair = self.arms[claim.b or ""], self.arms[claim.a or ""]
            ratio = ranking.pair_ratio(
                self.run,
                figure,
                pair,
                confidence,
                self._compare(figure.key, confidence),
            )
            if claim.kind == "less":
                return decisions.judge_direction(ratio)
            return decisions.judge_band(ratio, claim.band or (1.0, 1.0))
        series = [figures for _, figures in self.series(claim)]
        if claim.kind == "optimum":
            return decisions.judge_optimum(series, confidence)
        if claim.kind == "spread":
            a, b = series
            ratio = spread_ratio(b, a, confidence)
            return decisions.judge_direction(
                ratio, decisions.MATERIAL_SPREAD, FEWEST_ROUNDS_OF_SPREAD
            )
        nearer, farther = (
            {number: b[number] / a[number] for number in a.keys() & b.keys()}
            for a, b in (series[:2], series[2:])
        )
        return decisions.judge_direction(paired_ratio(farther, nearer, confidence))

    def series(self, claim: Claim) -> list[tuple[str, dict[int, float]]]:
        """Return the claim's arms with their figures by round.

        Arms of a sweep are in the order of its axis.
        """
        sweep = self.sweep(claim)
        names = (
            [sweep[value] for value in sort_values(sweep)]
            if claim.arms
            else _named_arms(claim)
        )
        return [
            (name, ranking.clean_rounds(self.run, name, of_claim(claim.figure).of))
            for name in names
        ]

    def sweep(self, claim: Claim) -> dict[AxisValue, str]:
        """Return the arms of a claim about a sweep by their values on the axis.

        Empty for other claims.
        """
        return {
            next(iter(arm.axes.values())): name
            for name, arm in self.arms.items()
            if name in claim.arms
        }

    def missing_arms(self, claim: Claim) -> str:
        """Return which arms of the claim the machine could not run, and why.

        Empty if it could run all.
        """
        missing = self.run.experiment.unavailable_among(sorted(arms_of_claim(claim)))
        return f"the machine could not run {missing}" if missing else ""


def _judge(
    evidence: ClaimEvidence, claim: Claim, cautions: Sequence[Caution]
) -> ClaimResult:
    """Judge one claim by trials without errors. `cautions`: all of the run."""
    run, figure = evidence.run, of_claim(claim.figure)
    arms = arms_of_claim(claim)
    doubts = [one for one in cautions if not arms.isdisjoint(one.arms)]
    finished = {name: run.finished_trials_of(name) for name in sorted(arms)}
    finding = evidence.finding(claim, decisions.confidence_of(run.experiment.precision))
    bounded = [name for name, trials in finished.items() if figure.has_bounds(trials)]
    if bounded:  # the rounds that do not count may be the slowest of their arm
        finding = replace(finding, verdict="inconclusive")
    shortfalls = {
        name: why
        for name, trials in finished.items()
        if (why := ranking.shortfall(trials))
    }
    unlike = {
        name: why for name, why in ranking.unlike_arms(run).items() if name in arms
    }
    axis, source = sort_values(evidence.sweep(claim)), run.experiment.source
    settles = None
    if finding.verdict == "inconclusive" and not unlike:
        settles = _settles(evidence, claim, finding, [*shortfalls], bounded)
    turning = finding.turning
    between = turning.between if turning else None
    shared: dict[str, Any] = {
        name: value for name, value in claim if name in ClaimResult.model_fields
    }
    return ClaimResult(
        **shared,
        source=(
            f"{source.authors}, {source.date}" if source and not claim.control else None
        ),
        verdict=finding.verdict,
        ratio=finding.ratio.value if finding.ratio else None,
        interval=finding.ratio.interval if finding.ratio else None,
        best=axis[turning.best] if turning else None,
        knee=axis[turning.knee] if turning and _shows_knee(axis, between) else None,
        knee_between=(axis[between[0]], axis[between[1]]) if between else None,
        rounds=finding.ratio.rounds if finding.ratio else 0,
        measured=evidence.missing_arms(claim)
        or "; ".join(
            f"{name} is not compared: {why}"
            for name, why in (shortfalls | unlike).items()
        )
        or _measured(claim, finding, finished, axis),
        settles=settles,
        cautions=[
            one.kind for one in doubts if not one.figures or figure.key in one.figures
        ],
    )


def _measured(
    claim: Claim,
    finding: Finding,
    finished: dict[str, list[Trial]],
    axis: Sequence[AxisValue],
) -> str:
    """Say what was measured, and how many rounds do not count.

    Arms are named with their concurrency if it differs.
    """
    label = of_claim(claim.figure).label
    flights = {
        name: trials[0].planned.concurrency
        for name in _named_arms(claim)
        if (trials := finished[name])
    }
    shows_flights = len(set(flights.values())) > 1
    a, b, c, d = (
        f"{name} (c={flights[name]})" if shows_flights and name in flights else name
        for name in (claim.a, claim.b, claim.c, claim.d)
    )
    if finding.ratio is None:
        said = "no round has a trial without errors of every arm"
    elif claim.kind == "optimum" and finding.turning is not None:
        said = (
            f"least {label} at {axis[finding.turning.best]},"
            f" {knee_text(axis, finding.turning.between)}"
        )
        said += (
            f"; the better end of {axis[0]} and {axis[-1]} has"
            f" {units.ratio(finding.ratio.value)} times the least"
        )
        said += " between them"
        if len(axis) > 3:
            said += (
                f" (interval of at least 95 % for the best of these {len(axis) - 2})"
            )
    elif claim.kind == "spread":
        said = (
            f"the {label} of {b} varies {units.ratio(finding.ratio.value)} times as"
            f" much as that of {a}"
        )
    elif claim.kind == "narrower":
        said = (
            f"{d} over {c} in {label} is {units.ratio(finding.ratio.value)} times {b}"
            f" over {a}"
        )
    else:
        said = f"{b} has {units.ratio(finding.ratio.value)} times the {label} of {a}"
    failed = {
        name: sum(bool(trial.figures.errors) for trial in trials)
        for name, trials in finished.items()
    }
    parts = [f"{count} of {name}" for name, count in failed.items() if count]
    return (
        f"{said}; without rounds in which requests failed: {', '.join(parts)}"
        if parts
        else said
    )


def _settles(
    evidence: ClaimEvidence,
    claim: Claim,
    finding: Finding,
    short: Sequence[str],
    bounded: Sequence[str],
) -> str:
    """Say what would settle an inconclusive claim, or why nothing would.

    `short`: arms that never reached their concurrency. `bounded`: arms whose figure is
    only a lower bound.
    """
    if evidence.missing_arms(claim):
        return "a run on a machine that has what is missing"
    if short:
        return f"longer trials of {', '.join(short)} (-n or -d), or a lower -c"
    if bounded:
        label = of_claim(claim.figure).label
        return (
            f"trials of {', '.join(bounded)} in which fewer requests fail: their"
            f" {label} is only a lower bound"
        )
    if missing := dict.fromkeys(
        name for name, figures in evidence.series(claim) if not figures
    ):
        return f"trials of {', '.join(missing)} without errors"
    return _more_rounds(claim, finding, evidence.run.experiment.precision)


def _more_rounds(claim: Claim, finding: Finding, precision: float | None) -> str:
    if finding.negligible:
        share = f"{(finding.negligible - 1) * 100:.2g} %"
        known = f"there is no difference of {share}"
        if claim.kind == "spread":
            known = (
                f"neither arm varies {finding.negligible:g} times as much as the other"
            )
        if claim.kind == "optimum":
            known = f"no point between the ends is {share} less than the better end"
        return (
            f"no number of rounds: {known}, and more rounds could only show a"
            " smaller one"
        )
    if (
        precision
        and finding.material is None
        and decisions.is_precise(finding, precision)
    ):
        of_band = " of the band" if claim.band else ""
        return (
            f"no number of rounds: the ratio lies on the limit{of_band}, to the"
            " requested precision"
        )
    if finding.more_rounds:
        return (
            f"about {units.rounds(finding.more_rounds)} at this spread (--rounds"
            f" {finding.more_rounds})"
        )
    return decisions.NOT_WORTH
