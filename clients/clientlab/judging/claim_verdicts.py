"""Claims of a run with their verdicts, from its trials; the knee of a sweep in a phrase.

The interval of a knee is stated with it, or no knee is claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clientlab import units
from clientlab.analysis import hypotheses as judge
from clientlab.analysis.decisions import NOT_WORTH
from clientlab.analysis.hypotheses import Finding
from clientlab.analysis.precision import confidence_of, on_the_limit
from clientlab.analysis.sweeps import Value, in_order
from clientlab.judging.contrasts import ClaimEvidence, arms_of_claim
from clientlab.results.document import ClaimResult, Run
from clientlab.results.figures import of_claim
from clientlab.results.plan import AxisValue, Claim


def shows_knee(axis: Sequence[Value], between: tuple[int, int] | None) -> bool:
    """Whether the rounds rule out a point of the sweep at least."""
    return between is not None and between[1] - between[0] + 1 < len(axis)


def knee_text(axis: Sequence[Value], between: tuple[int, int] | None) -> str:
    """Where the knee is. `between`: the first and the last index on the axis that it may have; None if unknown."""
    if between is None:
        return "knee unknown: an interval needs 3 rounds"
    first, last = between
    if first == last:
        return f"knee at {axis[first]}"
    if not shows_knee(axis, between):
        return "knee unknown: these rounds leave every point of the sweep for it"
    return f"knee between {axis[first]} and {axis[last]} (95 %)"


def judged(run: Run, confidence: float | None = None) -> list[ClaimResult]:
    """Every claim with its verdict and the cautions about its arms. Only trials without errors count."""
    level = confidence_of(run.experiment.precision) if confidence is None else confidence
    evidence = ClaimEvidence(run)
    return [_judged(evidence, claim, level) for claim in run.experiment.claims]


def finding_of(evidence: ClaimEvidence, claim: Claim, confidence: float) -> Finding:
    """The finding of a claim from the run's rounds. Inconclusive without a ratio if an arm of it was left out."""
    if _left_out_arms(evidence.run, claim):
        return Finding("inconclusive", None)
    series = [figures for _, figures in _series(evidence, claim)]
    if claim.kind == "optimum":
        return judge.inside(series, confidence)
    if claim.kind == "narrower":
        nearer, farther = (_gaps(*pair) for pair in (series[:2], series[2:]))
        return judge.less(nearer, farther, confidence)
    if claim.kind == "spread":
        a, b = series
        return judge.spread(a, b, confidence)
    ratio = evidence.ratio(claim, confidence)
    return judge.less_by(ratio) if claim.kind == "less" else judge.within(ratio, claim.band or (1.0, 1.0))


def _series(evidence: ClaimEvidence, claim: Claim) -> list[tuple[str, dict[int, float]]]:
    """The claim's arms with their figures by round. Arms of a sweep are in the order of its axis."""
    names = [name for name in (claim.a, claim.b, claim.c, claim.d) if name is not None]
    if claim.arms:
        places = evidence.sweep(claim)
        names = [places[place] for place in in_order(places)]
    return [(name, evidence.series(name, claim.figure)) for name in names]


def _judged(evidence: ClaimEvidence, claim: Claim, confidence: float) -> ClaimResult:
    run = evidence.run
    finding = finding_of(evidence, claim, confidence)
    if _bounded(evidence, claim):  # rounds that were left out may be the slowest of their arm
        finding = replace(finding, verdict="inconclusive")
    axes = in_order(evidence.sweep(claim))
    source = run.experiment.source
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
        best=None if finding.best is None else axes[finding.best],
        knee=axes[finding.knee] if finding.knee is not None and shows_knee(axes, finding.knee_between) else None,
        knee_between=_values(axes, finding.knee_between),
        rounds=finding.ratio.rounds if finding.ratio else 0,
        measured=_left_out_arms(run, claim)
        or _shortfalls(evidence, claim)
        or _measured(_with_concurrency(evidence, claim), finding, axes) + _failed_rounds(evidence, claim),
        settles=_settles(evidence, claim, finding),
        cautions=evidence.cautions(claim),
    )


def _gaps(a: dict[int, float], b: dict[int, float]) -> dict[int, float]:
    """Round → b's figure over a's, of the rounds that have both."""
    return {number: b[number] / a[number] for number in a.keys() & b.keys()}


def _values(axes: list[AxisValue], between: tuple[int, int] | None) -> tuple[AxisValue, AxisValue] | None:
    return None if between is None else (axes[between[0]], axes[between[1]])


def _measured(claim: Claim, finding: Finding, axes: list[AxisValue]) -> str:
    label = of_claim(claim.figure).label
    if finding.ratio is None:
        return "no round has a trial without errors of every arm"
    times = f"{units.ratio(finding.ratio.value)} times"
    if claim.kind == "optimum" and finding.best is not None:
        found = f"least {label} at {axes[finding.best]}, {knee_text(axes, finding.knee_between)}"
        better = f"{found}; the better end of {axes[0]} and {axes[-1]} has {times} the least between them"
        inner = len(axes) - 2
        return better if inner == 1 else f"{better} (interval of at least 95 % for the best of these {inner})"
    if claim.kind == "spread":
        return f"the {label} of {claim.b} varies {times} as much as that of {claim.a}"
    if claim.kind == "narrower":
        return f"{claim.d} over {claim.c} in {label} is {times} {claim.b} over {claim.a}"
    return f"{claim.b} has {times} the {label} of {claim.a}"


def _bounded(evidence: ClaimEvidence, claim: Claim) -> list[str]:
    """Arms of the claim whose figure is only a lower bound in some round, because requests failed."""
    figure = of_claim(claim.figure)
    return sorted(name for name in arms_of_claim(claim) if figure.has_bounds(evidence.done(name)))


def _left_out_arms(run: Run, claim: Claim) -> str:
    """What the run's machine could not run of the claim; empty without such an arm."""
    found = run.experiment.unavailable_among(sorted(arms_of_claim(claim)))
    return f"the machine could not run {found}" if found else ""


def _shortfalls(evidence: ClaimEvidence, claim: Claim) -> str:
    """Return why arms of the claim are not compared; empty if all reached their concurrency."""
    found = {name: evidence.shortfall(name) for name in sorted(arms_of_claim(claim))}
    return "; ".join(f"{name} is not compared: {why}" for name, why in found.items() if why)


def _failed_rounds(evidence: ClaimEvidence, claim: Claim) -> str:
    """A remark on the rounds that do not count because requests failed in them; empty without one."""
    counts = {name: sum(bool(one.errors) for one in evidence.done(name)) for name in sorted(arms_of_claim(claim))}
    parts = [f"{count} of {name}" for name, count in counts.items() if count]
    return f"; without rounds in which requests failed: {', '.join(parts)}" if parts else ""


def _with_concurrency(evidence: ClaimEvidence, claim: Claim) -> Claim:
    """The claim with the concurrency behind the names of its arms, where it differs."""
    names = [name for name in (claim.a, claim.b, claim.c, claim.d) if name is not None]
    flights = {name: trials[0].concurrency for name in names if (trials := evidence.done(name))}
    if len(set(flights.values())) < 2:
        return claim
    shown = {name: f"{name} (c={count})" for name, count in flights.items()}
    return claim.model_copy(update={place: shown.get(getattr(claim, place)) for place in ("a", "b", "c", "d")})


def _settles(evidence: ClaimEvidence, claim: Claim, finding: Finding) -> str | None:
    if finding.verdict != "inconclusive":
        return None
    if lacking := _lacking(evidence, claim):
        return lacking
    precision = evidence.run.experiment.precision
    if finding.negligible:
        found = _negligible(claim, finding.negligible)
        return f"no number of rounds: {found}, and more rounds could only show a smaller one"
    if precision and finding.ratio and on_the_limit(finding, precision):
        of_band = " of the band" if claim.band else ""
        return f"no number of rounds: the ratio lies on the limit{of_band}, to the requested precision"
    return _more_rounds(finding)


def _lacking(evidence: ClaimEvidence, claim: Claim) -> str | None:
    """What the claim needs that more rounds of the same would not bring; None if it has all."""
    if _left_out_arms(evidence.run, claim):
        return "a run on a machine that has what is missing"
    if short := [name for name in sorted(arms_of_claim(claim)) if evidence.shortfall(name)]:
        return f"longer trials of {', '.join(short)} (-n or -d), or a lower -c"
    if bounded := _bounded(evidence, claim):
        label = of_claim(claim.figure).label
        return f"trials of {', '.join(bounded)} in which fewer requests fail: their {label} is only a lower bound"
    if missing := dict.fromkeys(name for name, figures in _series(evidence, claim) if not figures):
        return f"trials of {', '.join(missing)} without errors"
    return None


def _more_rounds(finding: Finding) -> str:
    if finding.more_rounds:
        return f"about {finding.more_rounds} rounds at this spread (--rounds {finding.more_rounds})"
    return NOT_WORTH


def _negligible(claim: Claim, difference: float) -> str:
    if claim.kind == "spread":
        return f"neither arm varies {difference:g} times as much as the other"
    share = f"{(difference - 1) * 100:.2g} %"
    if claim.kind == "optimum":
        return f"no point between the ends is {share} less than the better end"
    return f"there is no difference of {share}"
