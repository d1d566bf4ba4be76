"""The claims of a run, judged from its trials."""

from __future__ import annotations

from collections.abc import Callable

from clientlab.analysis import claims as judge
from clientlab.analysis.claims import MOST_ROUNDS, Finding
from clientlab.analysis.precision import confidence_of, on_the_limit
from clientlab.analysis.sweeps import in_order
from clientlab.runs.document import Arm, AskedClaim, AxisValue, Claim, Figure, Run, Trial

_Measure = Callable[[Trial], float | int | None]


def _latency(quantile: str) -> _Measure:
    def read(trial: Trial) -> float | None:
        return None if trial.latency_seconds is None else float(getattr(trial.latency_seconds, quantile))

    return read


_FIGURES: dict[Figure, tuple[str, _Measure]] = {
    "wall_seconds": ("wall time", lambda trial: trial.wall_seconds),
    "requests_per_second": ("requests a second", lambda trial: trial.requests_per_second),
    "p50": ("median latency", _latency("p50")),
    "p99": ("99th percentile", _latency("p99")),
    "cpu_seconds": ("CPU time", lambda trial: trial.cpu_seconds),
    "peak_rss_bytes": ("peak memory", lambda trial: trial.peak_rss_bytes),
    "connections_opened": ("connections", lambda trial: trial.connections_opened),
    "elapsed": ("summed elapsed", lambda trial: trial.elapsed_seconds_sum),
}
"""What each figure is called, and where it stands in a trial."""


def judged(run: Run, confidence: float | None = None) -> list[Claim]:
    """Every claim of the run's experiment with its verdict, from the rounds in which nothing failed."""
    level = confidence_of(run.experiment.precision) if confidence is None else confidence
    return [_judged(run, asked, level) for asked in run.experiment.claims]


def by_round(run: Run, arm: str, figure: Figure) -> dict[int, float]:
    """Round → figure of an arm. A trial with an error did less work than it was asked for, and is left out."""
    measure = _FIGURES[figure][1]
    return {
        trial.round: float(value)
        for trial in run.trials
        if trial.arm == arm and trial.status == "done" and not trial.errors
        for value in [measure(trial)]
        if value is not None and value > 0
    }


def finding_of(run: Run, asked: AskedClaim, confidence: float) -> Finding:
    """What the run's rounds say of a claim."""
    return _finding(asked, [figures for _, figures in _series(run, asked)], confidence)


def _series(run: Run, asked: AskedClaim) -> list[tuple[str, dict[int, float]]]:
    """Arms with their figures by round, as the claim names them; those of a sweep in the order of its axis."""
    names = [name for name in (asked.a, asked.b, asked.c, asked.d) if name]
    if asked.arms:
        places = {_place(arm): arm.name for arm in run.experiment.arms if arm.name in asked.arms}
        names = [places[place] for place in in_order(places)]
    return [(name, by_round(run, name, asked.figure)) for name in names]


def _judged(run: Run, asked: AskedClaim, confidence: float) -> Claim:
    finding = finding_of(run, asked, confidence)
    axes = in_order(_place(arm) for arm in run.experiment.arms if arm.name in asked.arms)
    source = run.experiment.source
    return Claim(
        name=asked.name,
        text=asked.text,
        source=f"{source.authors}, {source.date}" if source and not asked.control else None,
        kind=asked.kind,
        figure=asked.figure,
        control=asked.control,
        published=asked.published,
        verdict=finding.verdict,
        ratio=finding.ratio.value if finding.ratio else None,
        interval=finding.ratio.interval if finding.ratio else None,
        band=asked.band,
        best=None if finding.best is None else axes[finding.best],
        knee=None if finding.knee is None else axes[finding.knee],
        rounds=finding.ratio.rounds if finding.ratio else 0,
        measured=_measured(asked, finding, axes),
        settles=_settles(run, asked, finding),
    )


def _finding(asked: AskedClaim, series: list[dict[int, float]], confidence: float) -> Finding:
    if asked.kind == "optimum":
        return judge.inside(series, confidence)
    if asked.kind == "narrower":
        nearer, farther = (_gaps(*pair) for pair in (series[:2], series[2:]))
        return judge.less(nearer, farther, confidence)
    a, b = series
    if asked.kind == "ratio":
        return judge.within(a, b, asked.band or (1.0, 1.0), confidence)
    return (judge.less if asked.kind == "less" else judge.spread)(a, b, confidence)


def _gaps(a: dict[int, float], b: dict[int, float]) -> dict[int, float]:
    """Round → b's figure over a's, of the rounds that have both."""
    return {number: b[number] / a[number] for number in a.keys() & b.keys()}


def _place(arm: Arm) -> AxisValue:
    return next(iter(arm.axes.values()))


def _measured(asked: AskedClaim, finding: Finding, axes: list[AxisValue]) -> str:
    what = _FIGURES[asked.figure][0]
    if finding.ratio is None:
        return "no round in which all its arms were measured without an error"
    value = finding.ratio.value
    times = f"{value:,.0f} times" if value >= 100 else f"{value:.3g} times"
    if asked.kind == "optimum" and finding.best is not None and finding.knee is not None:
        found = f"least {what} at {axes[finding.best]}, within 5 % of it from {axes[finding.knee]} on"
        better = f"{found}; the better end of {axes[0]} and {axes[-1]} has {times} the least between them"
        inner = len(axes) - 2
        return better if inner == 1 else f"{better} (at least 95 %, whichever of the {inner} it is)"
    if asked.kind == "spread":
        return f"the {what} of {asked.b} varies {times} as much as that of {asked.a}"
    if asked.kind == "narrower":
        return f"{asked.d} over {asked.c} in {what} is {times} {asked.b} over {asked.a}"
    return f"{asked.b} has {times} the {what} of {asked.a}"


def _settles(run: Run, asked: AskedClaim, finding: Finding) -> str | None:
    if finding.verdict != "inconclusive":
        return None
    if missing := dict.fromkeys(name for name, figures in _series(run, asked) if not figures):
        return f"trials of {', '.join(missing)} that end without an error"
    precision = run.experiment.precision
    if finding.negligible:
        found = _negligible(asked, finding.negligible)
        return f"no number of rounds: {found}, and more could only show a smaller difference"
    if precision and finding.ratio and on_the_limit(finding, precision):
        of_band = " of the band" if asked.band else ""
        return f"no number of rounds: the ratio lies on the limit{of_band}, as far as so narrow an interval can tell"
    return _more_rounds(finding)


def _more_rounds(finding: Finding) -> str:
    if finding.more_rounds:
        return f"about {finding.more_rounds} rounds at this spread (--rounds {finding.more_rounds})"
    if finding.material:
        return f"more than {MOST_ROUNDS:,} rounds at this spread"
    return "no number of rounds: the ratio lies on the limit, as far as can be seen here"


def _negligible(asked: AskedClaim, difference: float) -> str:
    if asked.kind == "spread":
        return f"neither varies {difference:g} times as much as the other"
    share = f"{(difference - 1) * 100:.2g} %"
    if asked.kind == "optimum":
        return f"nothing between the ends is {share} less than the better of them"
    return f"there is no difference of {share}"
