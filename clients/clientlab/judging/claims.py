"""Claims of a run with their verdicts, from its trials."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from clientlab import units
from clientlab.analysis import hypotheses as judge
from clientlab.analysis.hypotheses import MOST_ROUNDS, Finding
from clientlab.analysis.precision import confidence_of, on_the_limit
from clientlab.analysis.sweeps import in_order
from clientlab.judging.cautions import cautions_of
from clientlab.judging.knees import knee_text, shows_knee
from clientlab.results.document import ClaimResult, Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import of_claim
from clientlab.results.plan import Arm, AxisValue, Claim
from clientlab.results.trial import Trial


def judged(run: Run, confidence: float | None = None) -> list[ClaimResult]:
    """Every claim with its verdict and the cautions about its arms. Only trials without errors count."""
    level = confidence_of(run.experiment.precision) if confidence is None else confidence
    return [_judged(run, claim, level) for claim in run.experiment.claims]


def by_round(run: Run, arm: str, figure: Figure) -> dict[int, float]:
    """Round → figure of an arm, without trials that had errors: they did less work."""
    return {
        trial.round: value
        for trial in run.trials
        if trial.arm == arm and not trial.errors
        for value in figure.values([trial])
        if value > 0
    }


def finding_of(run: Run, claim: Claim, confidence: float) -> Finding:
    """The finding of a claim from the run's rounds. Inconclusive without a ratio if an arm of it was left out."""
    if _left_out_arms(run, claim):
        return Finding("inconclusive", None)
    return _finding(claim, [figures for _, figures in _series(run, claim)], confidence)


def _arms(claim: Claim) -> set[str]:
    return {name for name in (claim.a, claim.b, claim.c, claim.d, *claim.arms) if name is not None}


def _cautions(run: Run, claim: Claim) -> list[str]:
    """The kinds of the cautions that the trials of the claim's arms give rise to, whatever other arms there are.

    A caution that doubts certain figures concerns only the claims that compare one of them.
    """
    key = of_claim(claim.figure).key
    names = _arms(claim)
    arms = [arm for arm in run.experiment.arms if arm.name in names]
    own = run.model_copy(
        update={
            "trials": [trial for trial in run.trials if trial.arm in names],
            "experiment": run.experiment.model_copy(
                update={"arms": arms, "unavailable_arms": {}}  # listing these for each claim would take long
            ),
        }
    )
    return [
        caution.kind for caution in cautions_of(own) if caution.arms and (not caution.figures or key in caution.figures)
    ]


def _series(run: Run, claim: Claim) -> list[tuple[str, dict[int, float]]]:
    """The claim's arms with their figures by round. Arms of a sweep are in the order of its axis."""
    names = [name for name in (claim.a, claim.b, claim.c, claim.d) if name is not None]
    if claim.arms:
        places = {_place(arm): arm.name for arm in run.experiment.arms if arm.name in claim.arms}
        names = [places[place] for place in in_order(places)]
    return [(name, by_round(run, name, of_claim(claim.figure))) for name in names]


def _judged(run: Run, claim: Claim, confidence: float) -> ClaimResult:
    finding = _without_bounds(run, claim, finding_of(run, claim, confidence))
    axes = in_order(_place(arm) for arm in run.experiment.arms if arm.name in claim.arms)
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
        or _measured(_with_concurrency(run, claim), finding, axes) + _failed_rounds(run, claim),
        settles=_settles(run, claim, finding),
        cautions=_cautions(run, claim),
    )


def _finding(claim: Claim, series: list[dict[int, float]], confidence: float) -> Finding:
    if claim.kind == "optimum":
        return judge.inside(series, confidence)
    if claim.kind == "narrower":
        nearer, farther = (_gaps(*pair) for pair in (series[:2], series[2:]))
        return judge.less(nearer, farther, confidence)
    a, b = series
    if claim.kind == "ratio":
        return judge.within(a, b, claim.band or (1.0, 1.0), confidence)
    return (judge.less if claim.kind == "less" else judge.spread)(a, b, confidence)


def _gaps(a: dict[int, float], b: dict[int, float]) -> dict[int, float]:
    """Round → b's figure over a's, of the rounds that have both."""
    return {number: b[number] / a[number] for number in a.keys() & b.keys()}


def _place(arm: Arm) -> AxisValue:
    return next(iter(arm.axes.values()))


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


def _bounded(run: Run, claim: Claim) -> list[str]:
    """Arms of the claim whose figure is only a lower bound in some round, because requests failed."""
    figure = of_claim(claim.figure)
    return sorted(name for name in _arms(claim) if figure.has_bounds(_trials(run, name)))


def _trials(run: Run, arm: str) -> list[Trial]:
    return [trial for trial in run.trials if trial.arm == arm and trial.status == "done"]


def _without_bounds(run: Run, claim: Claim, finding: Finding) -> Finding:
    """The finding, inconclusive where rounds were left out because their figure is only a lower bound.

    Such rounds may be the slowest of their arm: the others alone would be the arm at its best.
    """
    return replace(finding, verdict="inconclusive") if _bounded(run, claim) else finding


def _left_out_arms(run: Run, claim: Claim) -> str:
    """What the run's machine could not run of the claim; empty without such an arm."""
    found = run.experiment.unavailable_among(sorted(_arms(claim)))
    return f"the machine could not run {found}" if found else ""


def _failed_rounds(run: Run, claim: Claim) -> str:
    """A remark on the rounds that do not count because requests failed in them; empty without one."""
    counts = {name: sum(bool(trial.errors) for trial in _trials(run, name)) for name in sorted(_arms(claim))}
    parts = [f"{count} of {name}" for name, count in counts.items() if count]
    return f"; without rounds in which requests failed: {', '.join(parts)}" if parts else ""


def _concurrencies(run: Run, arms: Iterable[str]) -> dict[str, int]:
    """Arm → its concurrency; empty if all arms have the same."""
    found = {name: trials[0].concurrency for name in arms if (trials := _trials(run, name))}
    return found if len(set(found.values())) > 1 else {}


def _with_concurrency(run: Run, claim: Claim) -> Claim:
    """The claim with the concurrency behind the names of its arms, where it differs."""
    flights = _concurrencies(run, [name for name in (claim.a, claim.b, claim.c, claim.d) if name is not None])
    if not flights:
        return claim
    shown = {name: f"{name} (c={count})" for name, count in flights.items()}
    return claim.model_copy(update={place: shown.get(getattr(claim, place)) for place in ("a", "b", "c", "d")})


def _settles(run: Run, claim: Claim, finding: Finding) -> str | None:
    if finding.verdict != "inconclusive":
        return None
    if lacking := _lacking(run, claim):
        return lacking
    precision = run.experiment.precision
    if finding.negligible:
        found = _negligible(claim, finding.negligible)
        return f"no number of rounds: {found}, and more rounds could only show a smaller one"
    if precision and finding.ratio and on_the_limit(finding, precision):
        of_band = " of the band" if claim.band else ""
        return f"no number of rounds: the ratio lies on the limit{of_band}, to the requested precision"
    return _more_rounds(finding)


def _lacking(run: Run, claim: Claim) -> str | None:
    """What the claim needs that more rounds of the same would not bring; None if it has all."""
    if _left_out_arms(run, claim):
        return "a run on a machine that has what is missing"
    if bounded := _bounded(run, claim):
        label = of_claim(claim.figure).label
        return f"trials of {', '.join(bounded)} in which fewer requests fail: their {label} is only a lower bound"
    if missing := dict.fromkeys(name for name, figures in _series(run, claim) if not figures):
        return f"trials of {', '.join(missing)} without errors"
    return None


def _more_rounds(finding: Finding) -> str:
    if finding.more_rounds:
        return f"about {finding.more_rounds} rounds at this spread (--rounds {finding.more_rounds})"
    if finding.material:
        return f"more than {MOST_ROUNDS:,} rounds at this spread"
    return "no number of rounds: the ratio lies on the limit"


def _negligible(claim: Claim, difference: float) -> str:
    if claim.kind == "spread":
        return f"neither arm varies {difference:g} times as much as the other"
    share = f"{(difference - 1) * 100:.2g} %"
    if claim.kind == "optimum":
        return f"no point between the ends is {share} less than the better end"
    return f"there is no difference of {share}"
