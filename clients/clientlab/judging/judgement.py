"""What follows from the trials of a run: claims, cautions and further rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from clientlab.results.trial import Trial
from clientlab.statistics import decisions
from clientlab.statistics.decisions import DECIDED_CONFIDENCE, Finding
from clientlab.statistics.ratios import (
    FEWEST_ROUNDS_OF_SPREAD,
    Ratio,
    Series,
    paired_ratio,
    spread_ratio,
)
from clientlab.statistics.sweeps import Value, sort_values


def with_judgement(run: Run) -> Run:
    """Return the run with the claim results and cautions of its present trials."""
    evidence = ClaimEvidence(run)
    cautions = cautions_of(run)
    claims = [_judge(evidence, claim, cautions) for claim in run.experiment.claims]
    return run.updated(claims=claims, cautions=cautions)


def read_judged(path: Path) -> Run:
    """Read a run file, and judge the run unless it has ended.

    Then the file holds its judgement. A run that is not finished, and that no process
    measures, is interrupted. Raise LabError.
    """
    run = read_run(path)
    if run.status == "running" and not is_held(path.parent):
        run = run.updated(status="interrupted")
    has_claims = bool(run.claims) or not run.experiment.claims
    if has_claims and run.status in ("done", "incomplete"):
        return run
    return with_judgement(run)


def undecided_arms(run: Run, confidence: float = DECIDED_CONFIDENCE) -> set[str]:
    """Return the arms of comparisons that further rounds may decide.

    A run with a budget measures only these further. The comparisons are those with the
    fastest of a group, with the baseline, and between environments, servers, links and
    routes, and those of claims. An arm whose rate is not steady yet has none, but may
    get some. `confidence`: of their intervals. A look after each round does little harm
    at 99.9 % (Haybittle 1971, Peto et al. 1976).
    """
    undecided: set[str] = set()
    for ratio, *arms in _comparisons(run, confidence):
        if decisions.decide(ratio).word == "undecided":
            undecided.update(arms)
    plan = run.experiment
    if plan.slices is None:
        arms = [arm.name for arm in plan.arms]
        undecided |= {
            arm for arm in arms if may_become_steady(run.finished_trials_of(arm))
        }
    evidence = ClaimEvidence(run)
    for claim in plan.claims:
        finding = evidence.finding(claim, confidence)
        is_open = finding.verdict == "inconclusive" and not finding.negligible
        if is_open and finding.ratio is not None:
            undecided |= arms_of_claim(claim)
    return undecided


def _comparisons(run: Run, confidence: float) -> Iterator[tuple[Ratio, str, str]]:
    """Yield the ratios of a run that are known, and the two arms of each."""
    names = {ranking.arm_key(arm): arm.name for arm in run.experiment.arms}
    baseline = run.experiment.baseline or ""
    for group, standings in ranking.rank_arms(run, confidence).items():
        for standing in standings:
            name = names[group, standing.name]
            if standing.ratio is not None and not standing.fastest:
                yield standing.ratio, name, names[group, standing.reference]
            if standing.to_baseline is not None:
                yield standing.to_baseline, name, baseline
    for part in ranking.PARTS:
        for contrast in ranking.contrasts_by(part, run, confidence):
            if contrast.time is not None:
                yield contrast.time, contrast.arm.name, contrast.base.name


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


def _shows_knee(axis: Sequence[Value], between: tuple[int, int]) -> bool:
    """Return whether the rounds rule out at least one point of the sweep."""
    first, last = between
    return last - first + 1 < len(axis)


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
            compared = self._compare(figure.key, confidence)
            ratio = ranking.pair_ratio(self.run, figure, pair, confidence, compared)
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
        a, b, c, d = series
        ratio = paired_ratio(_divide(d, c), _divide(b, a), confidence)
        return decisions.judge_direction(ratio)

    def series(self, claim: Claim) -> list[tuple[str, dict[int, float]]]:
        """Return the claim's arms with their figures by round.

        Arms of a sweep are in the order of its axis.
        """
        names = _named_arms(claim) or [*self.sweep(claim).values()]
        figure = of_claim(claim.figure)
        return [
            (name, ranking.clean_rounds(self.run, name, figure.of)) for name in names
        ]

    def sweep(self, claim: Claim) -> dict[AxisValue, str]:
        """Return the arms of a claim about a sweep by their values on the axis.

        They are in the order of the axis. Empty for other claims.
        """
        by_value = {
            next(iter(arm.axes.values())): name
            for name, arm in self.arms.items()
            if name in claim.arms
        }
        return {value: by_value[value] for value in sort_values(by_value)}

    def missing_arms(self, claim: Claim) -> str:
        """Return which arms of the claim the machine could not run, and why.

        Empty if it could run all.
        """
        missing = self.run.experiment.unavailable_among(sorted(arms_of_claim(claim)))
        return f"the machine could not run {missing}" if missing else ""


def _divide(these: Series, those: Series) -> dict[int, float]:
    common = these.keys() & those.keys()
    return {number: these[number] / those[number] for number in common}


def _judge(
    evidence: ClaimEvidence,
    claim: Claim,
    cautions: Sequence[Caution],
) -> ClaimResult:
    """Judge one claim by trials without errors. `cautions`: all of the run."""
    run = evidence.run
    plan = run.experiment
    figure = of_claim(claim.figure)
    arms = arms_of_claim(claim)
    finished = {name: run.finished_trials_of(name) for name in sorted(arms)}
    finding = evidence.finding(claim, decisions.confidence_of(plan.precision))
    bounded = [name for name, trials in finished.items() if figure.has_bounds(trials)]
    if bounded:  # the rounds that do not count may be the slowest of their arm
        finding = replace(finding, verdict="inconclusive")
    shortfalls = {name: ranking.shortfall(finished[name]) for name in finished}
    short = {name: reason for name, reason in shortfalls.items() if reason}
    unlike = ranking.unlike_arms(run)
    unlike = {name: unlike[name] for name in unlike if name in arms}
    uncompared = [
        f"{name} is not compared: {reason}" for name, reason in (short | unlike).items()
    ]
    axis = [*evidence.sweep(claim)]
    measured = evidence.missing_arms(claim) or "; ".join(uncompared)
    if not measured:
        measured = _describe_ratio(claim, finding, finished, axis)
        measured += _describe_failed(finished)
    settles = None
    if finding.verdict == "inconclusive" and not unlike:
        settles = _settles(evidence, claim, finding, [*short], bounded)
    source = None
    if plan.source is not None and not claim.control:
        source = f"{plan.source.authors}, {plan.source.date}"
    doubts = [
        caution.kind
        for caution in cautions
        if not arms.isdisjoint(caution.arms)
        and (not caution.figures or figure.key in caution.figures)
    ]
    shared = {name: value for name, value in claim if name in ClaimResult.model_fields}
    return ClaimResult(
        **shared,
        **_fields_of_finding(finding, axis),
        source=source,
        measured=measured,
        settles=settles,
        cautions=doubts,
    )


def _fields_of_finding(finding: Finding, axis: Sequence[AxisValue]) -> dict[str, Any]:
    ratio = finding.ratio
    turning = finding.turning
    fields: dict[str, Any] = {"verdict": finding.verdict, "rounds": 0}
    if ratio is not None:
        fields["ratio"] = ratio.value
        fields["interval"] = ratio.interval
        fields["rounds"] = ratio.rounds
    if turning is not None:
        fields["best"] = axis[turning.best]
        if turning.between is not None:
            first, last = turning.between
            fields["knee_between"] = axis[first], axis[last]
            if _shows_knee(axis, turning.between):
                fields["knee"] = axis[turning.knee]
    return fields


def _describe_failed(finished: dict[str, list[Trial]]) -> str:
    """Return how many rounds do not count, to be added to a sentence."""
    parts = []
    for name, trials in finished.items():
        failed = [trial for trial in trials if trial.has_spoiling_errors]
        if failed:
            parts.append(f"{len(failed)} of {name}")
    if not parts:
        return ""
    return f"; without rounds in which requests failed: {', '.join(parts)}"


def _describe_ratio(
    claim: Claim,
    finding: Finding,
    finished: dict[str, list[Trial]],
    axis: Sequence[AxisValue],
) -> str:
    """Return what was measured. Arms have their concurrency if it differs."""
    if finding.ratio is None:
        return "no round has a trial without errors of every arm"
    ratio = units.ratio(finding.ratio.value)
    label = of_claim(claim.figure).label
    if claim.kind == "optimum" and finding.turning is not None:
        best = axis[finding.turning.best]
        knee = knee_text(axis, finding.turning.between)
        said = (
            f"least {label} at {best}, {knee}; the better end of {axis[0]} and"
            f" {axis[-1]} has {ratio} times the least between them"
        )
        if len(axis) > 3:
            said += (
                f" (interval of at least 95 % for the best of these {len(axis) - 2})"
            )
        return said
    names = _named_arms(claim)
    in_flight = [finished[name][0].planned.concurrency for name in names]
    if len(set(in_flight)) > 1:
        names = [
            f"{name} (c={count})" for name, count in zip(names, in_flight, strict=True)
        ]
    a, b, *others = names
    if claim.kind == "spread":
        return f"the {label} of {b} varies {ratio} times as much as that of {a}"
    if claim.kind == "narrower":
        c, d = others
        return f"{d} over {c} in {label} is {ratio} times {b} over {a}"
    return f"{b} has {ratio} times the {label} of {a}"


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
    missing = [name for name, figures in evidence.series(claim) if not figures]
    if missing:
        return f"trials of {', '.join(dict.fromkeys(missing))} without errors"
    return _more_rounds(claim, finding, evidence.run.experiment.precision)


def _more_rounds(
    claim: Claim,
    finding: Finding,
    precision: float | None,
) -> str:
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
    has_edge = finding.material is None
    if precision and has_edge and decisions.is_precise(finding, precision):
        of_band = " of the band" if claim.band else ""
        return (
            f"no number of rounds: the ratio lies on the limit{of_band}, to the"
            " requested precision"
        )
    rounds = finding.more_rounds
    if not rounds:
        return decisions.NOT_WORTH
    return f"about {units.rounds(rounds)} at this spread (--rounds {rounds})"
