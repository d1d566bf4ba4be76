"""Claims of a run with their verdicts, from its trials; the knee of a sweep in a phrase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from clientlab import units
from clientlab.analysis.decisions import (
    MATERIAL_SPREAD,
    NOT_WORTH,
    Finding,
    confidence_of,
    is_precise,
    judge_band,
    judge_direction,
    judge_optimum,
)
from clientlab.analysis.ratios import FEWEST_ROUNDS_OF_SPREAD, paired_ratio, spread_ratio
from clientlab.analysis.sweeps import Value, in_order
from clientlab.judging.cautions import cautions_of
from clientlab.judging.contrasts import clean_rounds, pair_ratio
from clientlab.judging.ranking import compared_by, shortfall
from clientlab.results.document import Caution, ClaimResult, Run
from clientlab.results.figures import BY_KEY, of_claim
from clientlab.results.plan import Arm, AxisValue, Claim
from clientlab.results.trial import Trial


def knee_text(axis: Sequence[Value], between: tuple[int, int] | None) -> str:
    """Return where the knee is. `between`: the first and the last index on the axis that it may have, if known."""
    if between is None:
        return "knee unknown: an interval needs 3 rounds"
    first, last = between
    if first == last:
        return f"knee at {axis[first]}"
    if not _shows_knee(axis, between):
        return "knee unknown: these rounds leave every point of the sweep for it"
    return f"knee between {axis[first]} and {axis[last]} (95 %)"


def _shows_knee(axis: Sequence[Value], between: tuple[int, int] | None) -> bool:
    """Return whether the rounds rule out at least one point of the sweep."""
    return between is not None and between[1] - between[0] + 1 < len(axis)


def arms_of_claim(claim: Claim) -> frozenset[str]:
    """Return the names of the arms that a claim is about."""
    return frozenset([*_pairs_of(claim), *claim.arms])


def _pairs_of(claim: Claim) -> list[str]:
    return [name for name in (claim.a, claim.b, claim.c, claim.d) if name is not None]


class ClaimEvidence:
    """The trials of a run, as claims need them. What all claims about a figure need is computed once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.arms: dict[str, Arm] = {arm.name: arm for arm in run.experiment.arms}
        self._compared = cache(lambda key, confidence: compared_by(run, BY_KEY[key], confidence))
        self._cautions = cache(self._cautions_of)

    def finding(self, claim: Claim, confidence: float) -> Finding:
        """Return the finding of a claim. Inconclusive without a ratio if the machine could not run an arm of it."""
        if self.left_out(claim):
            return Finding("inconclusive", None)
        if claim.kind in {"less", "ratio"}:
            figure = of_claim(claim.figure)
            pair = self.arms[claim.b or ""], self.arms[claim.a or ""]
            ratio = pair_ratio(self.run, figure, pair, confidence, self._compared(figure.key, confidence))
            return judge_direction(ratio) if claim.kind == "less" else judge_band(ratio, claim.band or (1.0, 1.0))
        series = [figures for _, figures in self.series(claim)]
        if claim.kind == "optimum":
            return judge_optimum(series, confidence)
        if claim.kind == "spread":
            a, b = series
            return judge_direction(spread_ratio(b, a, confidence), MATERIAL_SPREAD, FEWEST_ROUNDS_OF_SPREAD)
        nearer, farther = (
            {number: b[number] / a[number] for number in a.keys() & b.keys()} for a, b in (series[:2], series[2:])
        )
        return judge_direction(paired_ratio(farther, nearer, confidence))

    def series(self, claim: Claim) -> list[tuple[str, dict[int, float]]]:
        """Return the claim's arms, each with its figure by round. Arms of a sweep are in the order of its axis."""
        sweep = self.sweep(claim)
        names = [sweep[place] for place in in_order(sweep)] if claim.arms else _pairs_of(claim)
        return [(name, clean_rounds(self.run, name, of_claim(claim.figure).of)) for name in names]

    def sweep(self, claim: Claim) -> dict[AxisValue, str]:
        """Return value of the axis → arm, of a claim about a sweep; empty for all others."""
        return {next(iter(arm.axes.values())): name for name, arm in self.arms.items() if name in claim.arms}

    def finished(self, claim: Claim) -> dict[str, list[Trial]]:
        """Return the finished trials of the claim's arms, by name."""
        return {
            name: [trial for trial in self.run.trials_of(name) if trial.status == "done"]
            for name in sorted(arms_of_claim(claim))
        }

    def left_out(self, claim: Claim) -> str:
        """Return what the run's machine could not run of the claim; empty without such an arm."""
        found = self.run.experiment.unavailable_among(sorted(arms_of_claim(claim)))
        return f"the machine could not run {found}" if found else ""

    def cautions(self, claim: Claim) -> list[str]:
        """Return the kinds of the cautions that the trials of the claim's arms give rise to, whatever other arms do.

        A caution that doubts certain figures concerns only the claims that compare one of them.
        """
        key = of_claim(claim.figure).key
        found = self._cautions(arms_of_claim(claim))
        return [one.kind for one in found if one.arms and (not one.figures or key in one.figures)]

    def _cautions_of(self, names: frozenset[str]) -> list[Caution]:
        run = self.run
        arms = [arm for arm in run.experiment.arms if arm.name in names]
        # Listing the unavailable arms for each claim would take long.
        plan = run.experiment.model_copy(update={"arms": arms, "unavailable_arms": {}})
        trials = sorted((trial for name in names for trial in run.trials_of(name)), key=lambda trial: trial.order)
        return cautions_of(run.model_copy(update={"trials": trials, "experiment": plan}))


def judged(run: Run, confidence: float | None = None) -> list[ClaimResult]:
    """Return every claim with its verdict and the cautions about its arms. Only trials without errors count."""
    evidence = ClaimEvidence(run)
    return [
        _judge(evidence, claim, confidence or confidence_of(run.experiment.precision))
        for claim in run.experiment.claims
    ]


def _judge(evidence: ClaimEvidence, claim: Claim, confidence: float) -> ClaimResult:
    figure, finished = of_claim(claim.figure), evidence.finished(claim)
    finding = evidence.finding(claim, confidence)
    bounded = [name for name, trials in finished.items() if figure.has_bounds(trials)]
    if bounded:  # rounds that were left out may be the slowest of their arm
        finding = replace(finding, verdict="inconclusive")
    short = {name: why for name, trials in finished.items() if (why := shortfall(trials))}
    axis = in_order(evidence.sweep(claim))
    turning, source = finding.turning, evidence.run.experiment.source
    between = turning.between if turning else None
    return ClaimResult(
        name=claim.name,
        text=claim.text,
        source=f"{source.authors}, {source.date}" if source and not claim.control else None,
        kind=claim.kind,
        figure=claim.figure,
        control=claim.control,
        published=claim.published,
        verdict=finding.verdict,
        ratio=finding.ratio.value if finding.ratio else None,
        interval=finding.ratio.interval if finding.ratio else None,
        band=claim.band,
        best=axis[turning.best] if turning else None,
        knee=axis[turning.knee] if turning and _shows_knee(axis, between) else None,
        knee_between=(axis[between[0]], axis[between[1]]) if between else None,
        rounds=finding.ratio.rounds if finding.ratio else 0,
        measured=evidence.left_out(claim)
        or "; ".join(f"{name} is not compared: {why}" for name, why in short.items())
        or _measured(claim, finding, finished, axis),
        settles=_settles(evidence, claim, finding, list(short), bounded) if finding.verdict == "inconclusive" else None,
        cautions=evidence.cautions(claim),
    )


def _measured(claim: Claim, finding: Finding, finished: dict[str, list[Trial]], axis: Sequence[AxisValue]) -> str:
    """Say what was measured, without rounds in which requests failed. Names have their concurrency if it differs."""
    label = of_claim(claim.figure).label
    flights = {name: trials[0].concurrency for name in _pairs_of(claim) if (trials := finished[name])}
    unlike = len(set(flights.values())) > 1
    a, b, c, d = (
        f"{name} (c={flights[name]})" if unlike and name in flights else name
        for name in (claim.a, claim.b, claim.c, claim.d)
    )
    if finding.ratio is None:
        found = "no round has a trial without errors of every arm"
    elif claim.kind == "optimum" and finding.turning is not None:
        found = f"least {label} at {axis[finding.turning.best]}, {knee_text(axis, finding.turning.between)}"
        found += f"; the better end of {axis[0]} and {axis[-1]} has {units.ratio(finding.ratio.value)} times the least"
        found += " between them"
        if len(axis) > 3:
            found += f" (interval of at least 95 % for the best of these {len(axis) - 2})"
    elif claim.kind == "spread":
        found = f"the {label} of {b} varies {units.ratio(finding.ratio.value)} times as much as that of {a}"
    elif claim.kind == "narrower":
        found = f"{d} over {c} in {label} is {units.ratio(finding.ratio.value)} times {b} over {a}"
    else:
        found = f"{b} has {units.ratio(finding.ratio.value)} times the {label} of {a}"
    failed = {name: sum(bool(trial.errors) for trial in trials) for name, trials in finished.items()}
    parts = [f"{count} of {name}" for name, count in failed.items() if count]
    return f"{found}; without rounds in which requests failed: {', '.join(parts)}" if parts else found


def _settles(
    evidence: ClaimEvidence, claim: Claim, finding: Finding, short: Sequence[str], bounded: Sequence[str]
) -> str:
    """Say what would settle an inconclusive claim. `short`: arms that never reached their concurrency."""
    if evidence.left_out(claim):
        return "a run on a machine that has what is missing"
    if short:
        return f"longer trials of {', '.join(short)} (-n or -d), or a lower -c"
    if bounded:
        label = of_claim(claim.figure).label
        return f"trials of {', '.join(bounded)} in which fewer requests fail: their {label} is only a lower bound"
    if missing := dict.fromkeys(name for name, figures in evidence.series(claim) if not figures):
        return f"trials of {', '.join(missing)} without errors"
    return _more_rounds(claim, finding, evidence.run.experiment.precision)


def _more_rounds(claim: Claim, finding: Finding, precision: float | None) -> str:
    """Say how many more rounds would settle a claim, or why none would."""
    if finding.negligible:
        share = f"{(finding.negligible - 1) * 100:.2g} %"
        found = f"there is no difference of {share}"
        if claim.kind == "spread":
            found = f"neither arm varies {finding.negligible:g} times as much as the other"
        if claim.kind == "optimum":
            found = f"no point between the ends is {share} less than the better end"
        return f"no number of rounds: {found}, and more rounds could only show a smaller one"
    if precision and finding.material is None and is_precise(finding, precision):
        of_band = " of the band" if claim.band else ""
        return f"no number of rounds: the ratio lies on the limit{of_band}, to the requested precision"
    if finding.more_rounds:
        return f"about {finding.more_rounds} rounds at this spread (--rounds {finding.more_rounds})"
    return NOT_WORTH
