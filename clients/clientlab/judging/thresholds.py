"""Thresholds that fail a build: for a change (`p99 +10%`), or for a run's figures (`p99 > 50ms`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from clientlab.analysis.decisions import rounds_for_edge
from clientlab.analysis.ratios import CONFIDENCE, FEWEST_ROUNDS, Estimate, Ratio, typical_estimate, typical_figure
from clientlab.errors import FieldError
from clientlab.judging.changes import Change, simultaneous
from clientlab.judging.comparison import Comparison
from clientlab.results.document import Run, failed_for_good
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import find
from clientlab.units import WRITTEN, wanted

_OF_ARM = re.compile(r"\s*(.+):\s+(.+)")
_CHANGE = re.compile(r"\s*(\w+)\s*([+-])\s*(\d+(?:\.\d+)?)\s*(%?)\s*")
_LIMIT = re.compile(r"\s*(\w+)\s*([<>])\s*(\d+(?:\.\d+)?)\s*([^\s\d]*)\s*")
ThresholdOutcome = Literal["held", "failed", "not sure"]
SCHEDULED = "the schedule of arm {!r} decides it; judge p99 or achieved_rate"


@dataclass(frozen=True)
class Threshold:
    """`text`: as the user wrote it. `value`: a share for a `change`, in the figure's unit for a limit.

    `arm`: the one that it is for; None: all.
    """

    text: str
    figure: Figure
    value: float
    change: bool
    arm: str | None = None

    def applies_to(self, arm: str) -> bool:
        """Whether it is for that arm."""
        return self.arm is None or self.arm == arm


@dataclass(frozen=True)
class ThresholdResult:
    """The outcome of a threshold for an arm of a run. `found`: the ratio (of a share: the difference) or the figure.

    `at_least`: the figure is only a lower bound, because requests failed. It fails every limit, and every threshold of
    a change unless the bound was in the baseline and the change is surely for the better.

    `interval`: of what was found, by which it was judged; None where there is none.

    "not sure": the estimate is beyond the threshold, but a part of its interval is not. `rounds`: about how many in all
    would decide then; None if that is not worth it, or unknown. `lost`: failed trials of the
    arm, for thresholds of errors. Requests of a failed trial were not all counted, so the threshold fails.
    """

    threshold: Threshold
    run: str
    arm: str
    outcome: ThresholdOutcome
    found: float | None
    lost: int = 0
    at_least: bool = False
    interval: tuple[float, float] | None = None
    rounds: int | None = None


def change_threshold(text: str) -> Threshold:
    """``p99 +10%``, ``throughput -5%``, ``errors +0``; ``ARM: p99 +10%`` for one arm. Raises LabError."""
    arm, about, (name, sign, number, percent) = _read(text, _CHANGE, "a change, as 'p99 +10%' or 'throughput -5%'")
    worse = "+" if about.less_is_better else "-"
    if sign != worse:
        raise unusable(text, f"this is the good direction; write {name} {worse}{number}{percent}")
    if not percent and float(number):
        raise unusable(text, f"write the change in percent, as {name} {worse}10%")
    return Threshold(text, about, float(number) / 100, change=True, arm=arm)


def is_change(text: str) -> bool:
    """Whether a threshold is written as a change, and not as a limit."""
    parts = _OF_ARM.fullmatch(text)
    return _CHANGE.fullmatch(parts[2] if parts else text) is not None


def limit(text: str) -> Threshold:
    """``p99 > 50ms``, ``throughput < 1000``, ``errors > 0``; ``ARM: p99 > 50ms`` for one arm. Raises LabError."""
    arm, about, (name, sign, number, unit) = _read(text, _LIMIT, "its limit, as 'p99 > 50ms' or 'throughput < 1000'")
    worse = ">" if about.less_is_better else "<"
    if sign != worse:
        raise unusable(text, f"it would fail good results; write {name} {worse} {number}{unit}")
    sizes = WRITTEN[about.unit]
    if unit not in sizes and float(number):
        raise unusable(text, wanted(about.unit, f"{name} {sign} {number}"))
    return Threshold(text, about, float(number) * sizes.get(unit, 1.0), change=False, arm=arm)


def _read(text: str, pattern: re.Pattern[str], wanted: str) -> tuple[str | None, Figure, tuple[str, ...]]:
    """The arm if one is named, the figure, and the parts of the pattern."""
    parts = _OF_ARM.fullmatch(text)
    arm, rest = parts.groups() if parts else (None, text)
    match = pattern.fullmatch(rest)
    if match is None:
        raise unusable(text, f"write a figure and {wanted}")
    return arm, find(match[1], "fail_on", repr(text)), match.groups()


def unusable(text: str, message: str) -> FieldError:
    """The error of a threshold, which quotes it."""
    return FieldError(["fail_on"], message, value=repr(text))


def judge_changes(
    comparison: Comparison,
    thresholds: Sequence[Threshold],
    *,
    strict: bool,
) -> list[ThresholdResult]:
    """Every threshold for every arm of every run except the baseline.

    A threshold fails if the whole interval of the change is beyond it; with `strict`, if the estimate is. The interval
    is the one that the comparison shows. Errors are counted, not estimated: the count decides, and a failed trial fails
    a threshold of errors. An arm without a finished trial fails. Raises LabError if there is no interval to judge by.
    """
    _check_schedules(comparison, thresholds)
    compared = {figure.key for figure in comparison.figures}
    if lacking := next((one for one in thresholds if one.figure.key not in compared), None):
        raise unusable(lacking.text, f"no trial of these runs has a {lacking.figure.label} that can be compared")
    return [
        ThresholdResult(
            one,
            compared.run.run,
            arm,
            "failed" if lost else _bounded(change) or _outcome(one, change, arm, strict=strict),
            _found(change),
            lost,
            at_least=_is_bound(change),
            interval=None if change.ratio is None else change.ratio.interval,
            rounds=_rounds(one, change),
        )
        for one in thresholds
        for compared in comparison.others
        for arm, changes in compared.changes.items()
        if one.applies_to(arm)
        for change in [changes[one.figure.key]]
        for lost in [lost_trials(one, compared.run, arm)]
    ]


def _check_schedules(comparison: Comparison, thresholds: Sequence[Threshold]) -> None:
    """Raises FieldError for a figure that the schedule of an open load decides."""
    open_arms = {trial.arm for trial in comparison.base.trials if trial.open_load is not None}
    for one in thresholds:
        chosen = next((arm for arm in comparison.arms() if arm in open_arms and one.applies_to(arm)), None)
        if one.figure.scheduled and chosen is not None:
            raise unusable(one.text, SCHEDULED.format(chosen))


def judge_limits(run: Run, limits: Sequence[Threshold], *, strict: bool = False) -> list[ThresholdResult]:
    """Every limit for every arm, by the interval of the median over rounds; with `strict`, by the median alone.

    All intervals together hold the truth in 95 of 100 cases. Errors are counted: their share decides. Raises LabError
    if a median is beyond its limit and too few rounds give it no interval.
    """
    arms = [arm.name for arm in run.experiment.arms]
    level = simultaneous(sum(one.applies_to(arm) for one in limits for arm in arms))
    return list(_limits(run, limits, None if strict else level))


def _limits(run: Run, limits: Sequence[Threshold], confidence: float | None) -> Iterator[ThresholdResult]:
    for one in limits:
        for arm in run.experiment.arms:
            if not one.applies_to(arm.name):
                continue
            trials = run.trials_of(arm.name)
            found = one.figure.over_rounds(trials)
            if found is None and any(trial.status == "done" for trial in trials):
                raise unusable(one.text, f"run {run.run} has no {one.figure.label} for arm {arm.name!r}")
            lost = lost_trials(one, run, arm.name)
            bound = one.figure.less_is_better and one.figure.is_bound(trials)
            values = one.figure.values(trials)
            interval = (
                None if found is None or bound or one.figure.of_failed
                else typical_estimate(values, confidence or CONFIDENCE).interval
            )  # fmt: skip
            if found is None or lost or bound:
                outcome: ThresholdOutcome = "failed"
            elif not beyond(found, one.value, less=one.figure.less_is_better):
                outcome = "held"
            elif confidence is None or one.figure.of_failed:
                outcome = "failed"
            elif interval is None:
                raise too_few(one, arm.name, len(values))
            else:
                outcome = _surely(one, *interval)
            typical = typical_figure(dict(enumerate(values)), confidence or CONFIDENCE)
            rounds = rounds_for_edge(typical, one.value) if typical and outcome == "not sure" and one.value else None
            yield ThresholdResult(
                one, run.run, arm.name, outcome, found, lost, at_least=bound, interval=interval, rounds=rounds
            )


def _surely(one: Threshold, low: float, high: float) -> ThresholdOutcome:
    """Whether a median beyond the limit is surely beyond it."""
    less = one.figure.less_is_better
    return "failed" if beyond(low if less else high, one.value, less=less) else "not sure"


def too_few(one: Threshold, arm: str, rounds: int) -> FieldError:
    """The error of a threshold for an arm with too few rounds."""
    return unusable(
        one.text,
        f"arm {arm!r} has {rounds} of at least {FEWEST_ROUNDS} rounds, so there is no interval; "
        "measure more rounds, or judge by the estimate with `strict`",
    )


def lost_trials(one: Threshold, run: Run, arm: str) -> int:
    """Failed trials of an arm, if they fail the threshold."""
    return len(failed_for_good(run, arm)) if one.figure.of_failed else 0


def _rounds(one: Threshold, change: Change) -> int | None:
    """About how many rounds of each run would decide the threshold of a change."""
    if change.ratio is None or min(change.ratio.value, edge_of(one)) <= 0:
        return None
    ratio = change.ratio
    known = Ratio(ratio.value, ratio.low, ratio.high, min(change.rounds), change.confidence, pooled=True)
    return rounds_for_edge(known, edge_of(one))


def edge_of(one: Threshold) -> float:
    """Return the ratio at which the threshold of a change lies."""
    return 1 + one.value if one.figure.less_is_better else 1 - one.value


def _outcome(one: Threshold, change: Change, arm: str, *, strict: bool) -> ThresholdOutcome:
    if not change.rounds[1]:
        return "failed"
    if not change.rounds[0]:
        raise unusable(one.text, f"the baseline has no {one.figure.label} for arm {arm!r}")
    if change.difference is not None:
        worse = change.difference.value if one.figure.less_is_better else -change.difference.value
        return "failed" if worse > one.value else "held"
    if not strict and min(change.rounds) < FEWEST_ROUNDS:
        raise too_few(one, arm, min(change.rounds))
    less, ratio = one.figure.less_is_better, change.ratio
    if ratio is None:  # from 0 to more, or from more to 0: no percentage describes such a change
        if not beyond(change.after or 0.0, change.before or 0.0, less=less):
            return "held"
        return "failed" if strict or change.verdict == "worse" else "not sure"
    return outcome_of(one, ratio, strict=strict)


def outcome_of(one: Threshold, ratio: Estimate, *, strict: bool) -> ThresholdOutcome:
    """Whether a change is beyond its threshold: its whole interval, or with `strict` its estimate."""
    less = one.figure.less_is_better
    edge = edge_of(one)
    surely = ratio.low if less else ratio.high
    if beyond(ratio.value, edge, less=less):
        return "failed" if strict or (surely is not None and beyond(surely, edge, less=less)) else "not sure"
    return "held"


def _bounded(change: Change) -> ThresholdOutcome | None:
    """The outcome of a change of which a figure is only a lower bound; None for other changes."""
    if not change.bounded:
        return None
    return "failed" if _is_bound(change) else "held"


def _is_bound(change: Change) -> bool:
    """Whether the change is unknown, because the figure of a run is only a lower bound."""
    return change.bounded and change.verdict != "better"


def beyond(value: float, edge: float, *, less: bool) -> bool:
    """Whether a value is on the bad side of an edge. `less`: less is better."""
    return value > edge if less else value < edge


def _found(change: Change) -> float | None:
    estimate = change.ratio or change.difference
    return None if estimate is None else estimate.value
