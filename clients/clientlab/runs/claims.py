"""The claims of a run, judged from its trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clientlab.analysis import claims as judge
from clientlab.analysis.claims import Finding
from clientlab.analysis.precision import confidence_of
from clientlab.runs.document import Arm, AskedClaim, AxisValue, Claim, Figure, Run, Trial

MOST_ROUNDS = 1000
"""A claim that would need more is not settled by rounds."""

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


def _judged(run: Run, asked: AskedClaim, confidence: float) -> Claim:
    arms = {arm.name: arm for arm in run.experiment.arms}
    names = asked.arms or [name for name in (asked.a, asked.b, asked.c, asked.d) if name]
    series = [by_round(run, name, asked.figure) for name in names]
    finding = _finding(asked, series, confidence)
    axes = [_place(arms[name]) for name in asked.arms]
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
        settles=_settles(finding, dict(zip(names, series, strict=True))),
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
        return f"{found}; the better end of {axes[0]} and {axes[-1]} has {times} the least between them"
    if asked.kind == "spread":
        return f"the {what} of {asked.b} varies {times} as much as that of {asked.a}"
    if asked.kind == "narrower":
        return f"{asked.d} over {asked.c} in {what} is {times} {asked.b} over {asked.a}"
    return f"{asked.b} has {times} the {what} of {asked.a}"


def _settles(finding: Finding, series: Mapping[str, dict[int, float]]) -> str | None:
    if finding.verdict != "inconclusive":
        return None
    if missing := [name for name, figures in series.items() if not figures]:
        return f"trials of {', '.join(missing)} that end without an error"
    more = finding.more_rounds
    if more is None or more > MOST_ROUNDS:
        return "no number of rounds: the ratio lies on the limit, as far as can be seen here"
    return f"about {more} rounds at this spread (--rounds {more})"
