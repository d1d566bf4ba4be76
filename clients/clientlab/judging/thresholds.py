"""Thresholds that fail a build: limits of figures, and changes of them.

A limit is `p99 > 50ms`, a change `p99 +10%` or `p50 +2ms`. A threshold fails if a whole
interval is beyond it, or with `strict` if the estimate is. The errors of a single run
are counted instead of estimated, so their share decides, and a failed trial fails them.
An arm without a finished trial fails. What cannot be judged, because a figure or an
interval is missing, is not sure, with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from clientlab import strategies
from clientlab.errors import FieldError, IncompleteRun
from clientlab.judging.comparison import Change, Comparison, change_of
from clientlab.judging.ranking import (
    ArmPair,
    clean_rounds,
    fewest_rounds,
    pair_difference,
    pair_ratio,
    shortfall,
    version_pairs,
)
from clientlab.results.document import Run, failed_for_good
from clientlab.results.figures import HIGHEST_RATE, OPEN_LOAD_FIGURES, Figure, find
from clientlab.results.plan import Arm, Plan
from clientlab.statistics.decisions import rounds_for_edge
from clientlab.statistics.histogram import FEWEST_REQUESTS
from clientlab.statistics.ratios import (
    CONFIDENCE,
    FEWEST_ROUNDS,
    Ratio,
    divide_error,
    typical_estimate,
    typical_figure,
)
from clientlab.text import suggest_nearest
from clientlab.units import WRITTEN, Interval, wanted
from clientlab.workload.load import expected_requests, is_open

_WRITTEN = re.compile(
    r"\s*(?:(.+):\s+)?(\w+)\s*([+<>-])\s*(\d+(?:\.\d+)?)\s*([^\s\d]*)\s*"
)
_OF_CONNECTIONS = {"connections", "reuse"}
ThresholdOutcome = Literal["held", "failed", "not sure"]


@dataclass(frozen=True)
class Threshold:
    """A limit of a figure, or of its change."""

    text: str
    figure: Figure

    value: float
    """In the figure's unit; for a change, a share."""

    change: bool

    arm: str | None = None
    """The only arm that it is for."""

    in_seconds: bool = False
    """The value of the change is in seconds, too."""

    strict: bool = False
    """It fails if the estimate is beyond it, whatever the interval."""

    @property
    def edge(self) -> float:
        """The limit; for a change, the ratio that is just allowed."""
        if not self.change or self.in_seconds:
            return self.value
        return 1 + self.value if self.figure.less_is_better else 1 - self.value

    def applies_to(self, arm: str) -> bool:
        return self.arm is None or self.arm == arm


@dataclass
class ThresholdResult:
    """The outcome of a threshold for an arm of a run.

    "not sure": the estimate is beyond the threshold, but a part of its interval is not.
    """

    threshold: Threshold
    run: str
    arm: str
    outcome: ThresholdOutcome = "failed"

    found: float | None = None
    """The figure; for a change the ratio, or the difference of a share."""

    lost: int = 0
    """Failed trials, if the threshold is about errors."""

    at_least: bool = False
    """The figure is a lower bound, which fails unless it surely is for the better."""

    interval: Interval | None = None

    rounds: int | None = None
    """About how many rounds would decide."""

    floor: float = 0.0
    """Runs may differ by more than this change, so no number of rounds would decide."""

    reason: str | None = None
    """Why it cannot be judged; None if it is."""

    def judge(
        self,
        value: float,
        edge: float,
        *,
        exactly: bool = False,
    ) -> None:
        """Compare a value and the interval with an edge.

        `exactly`: compare only the value, as if the threshold was strict.
        """
        sign = 1 if self.threshold.figure.less_is_better else -1
        ends = self.interval
        if exactly or self.threshold.strict:
            ends = (value, value)
        if sign * value <= sign * edge:
            self.outcome = "held"
        elif ends is None or min(sign * end for end in ends) <= sign * edge:
            self.outcome = "not sure"

    def leave_open(self, reason: str) -> None:
        """Add the reason why it cannot be judged."""
        self.outcome = "not sure"
        self.reason = reason

    def count_lost(self, run: Run) -> None:
        """Add the failed trials of the arm if the threshold is about errors."""
        if self.threshold.figure.of_failed:
            self.lost = len(failed_for_good(run, self.arm))

    def estimate_rounds(self, ratio: Ratio | None) -> None:
        """Add about how many rounds would decide, if they can be estimated."""
        edge = self.threshold.edge
        if self.outcome == "not sure" and ratio and min(ratio.value, edge) > 0:
            self.rounds = rounds_for_edge(ratio, edge)


def exit_code_of(results: Sequence[ThresholdResult]) -> int:
    """Return 1 if a threshold failed, 3 if another cannot be judged, 0 otherwise."""
    if any(result.outcome == "failed" for result in results):
        return 1
    return IncompleteRun.exit_code if any(result.reason for result in results) else 0


def parse_threshold(text: str) -> Threshold:
    """Parse ``p99 > 50ms``, ``errors > 0`` or ``p99 +10%``.

    ``ARM: p99 > 50ms`` is for one arm. Raise FieldError.
    """
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise _refusal(
            text,
            "write a figure and its limit, as 'p99 > 50ms', or a change, as 'p99 +10%'",
        )
    arm, name, sign, number, unit = match.groups()
    figure = find(name, "fail_on", repr(text))
    is_change = sign in "+-"
    worse = "> " if figure.less_is_better else "< "
    if is_change:
        worse = "+" if figure.less_is_better else "-"
    if sign != worse.strip():
        better = f"write {name} {worse}{number}{unit}"
        raise _refusal(text, f"it would fail the better results; {better}")
    sizes = WRITTEN[figure.unit]
    in_seconds = is_change and figure.unit == "seconds" and unit in sizes
    if is_change and not in_seconds:
        sizes = {"%": 0.01}
    if unit not in sizes and (unit or float(number)):
        advice = wanted(figure.unit, f"{name} {sign} {number}")
        if is_change:
            advice = f"write the change in percent, as {name} {worse}10%"
        raise _refusal(text, advice)
    value = float(number) * sizes.get(unit, 1.0)
    return Threshold(
        text,
        figure,
        value,
        is_change,
        arm,
        in_seconds,
    )


def parse_change(text: str) -> Threshold:
    """Parse ``p99 +10%``, ``throughput -5%`` or ``errors +0``.

    Raise FieldError for anything else.
    """
    threshold = parse_threshold(text)
    if not threshold.change:
        raise _refusal(text, "write a change, as 'p99 +10%' or 'throughput -5%'")
    if threshold.in_seconds:
        raise _refusal(
            text,
            "only servers or environments of one run have it; write a change in"
            " percent",
        )
    return threshold


def _refusal(text: str, message: str) -> FieldError:
    return FieldError(["fail_on"], message, value=repr(text))


def check_limits(thresholds: Sequence[Threshold], plan: Plan) -> None:
    """Raise FieldError for a threshold that no run of the plan can be judged by."""
    check_changes(thresholds, plan)
    for threshold in thresholds:
        figure = threshold.figure
        fewest = FEWEST_ROUNDS
        if threshold.in_seconds and plan.budget is None:  # a budget adds rounds
            fewest = fewest_rounds(figure)
        if plan.rounds < fewest and not figure.of_failed:
            raise _refusal(
                threshold.text,
                f"an interval needs {fewest} rounds, not {plan.rounds}; raise `rounds`",
            )
        for arm in plan.arms:
            if not threshold.applies_to(arm.name):
                continue
            advice = _find_missing(figure, plan, arm)
            if advice is not None:
                raise _refusal(
                    threshold.text,
                    f"arm {arm.name!r} will have no {figure.label}; {advice}",
                )


def _check_arms(thresholds: Sequence[Threshold], arms: Sequence[str]) -> None:
    for threshold in thresholds:
        name = threshold.arm
        if name is not None and name not in arms:
            nearest = suggest_nearest(name, arms)
            raise _refusal(threshold.text, f"no arm is named {name!r}{nearest}")


def check_changes(thresholds: Sequence[Threshold], plan: Plan) -> None:
    """Raise FieldError for an unknown arm, and for a change that the plan cannot show.

    Two environments or servers can show it.
    """
    _check_arms(thresholds, [arm.name for arm in plan.arms])
    pairs = version_pairs(plan.arms)
    for threshold in thresholds:
        if not threshold.change:
            continue
        judged = [arm for arm, _ in pairs if threshold.applies_to(arm.name)]
        if not judged:
            where = "this run" if threshold.arm is None else f"arm {threshold.arm!r}"
            advice = "name two with `environments` or `url`, or write a limit"
            raise _refusal(
                threshold.text,
                f"{where} has no earlier environment or server; {advice}",
            )
        open_arms = [arm for arm in judged if is_open(plan.workloads[arm.workload])]
        _check_schedule(threshold, [arm.name for arm in open_arms])


def _check_schedule(threshold: Threshold, open_arms: Sequence[str]) -> None:
    if open_arms and threshold.figure.scheduled:
        raise _refusal(
            threshold.text,
            f"arm {open_arms[0]!r} has an open load, whose schedule decides this"
            " figure; judge p99 or achieved_rate",
        )


def _find_missing(
    figure: Figure,
    plan: Plan,
    arm: Arm,
) -> str | None:
    """Return what to do so that trials of the arm have the figure.

    None if they will.
    """
    workload = plan.workloads[arm.workload]
    if figure is HIGHEST_RATE and plan.find_max is None:
        return "set `find_max`"
    if not figure.is_known(workload, arm.link):
        return f"set `{figure.needs}`"
    if figure in OPEN_LOAD_FIGURES and not is_open(workload):
        return "set `rate`"
    if figure.key in _OF_CONNECTIONS and _hides_connections(arm):
        return "its library hides its connections; name another arm"
    fewest = FEWEST_REQUESTS.get(figure.key, 0)
    requests = expected_requests(workload) if fewest else None
    # A search sends enough.
    if requests is None or requests >= fewest or plan.find_max is not None:
        return None
    return (
        f"it takes {fewest:,} requests per trial, not {requests:,}; send more"
        " (`requests`)"
    )


def _hides_connections(arm: Arm) -> bool:
    client = strategies.find(arm.strategy).client
    return strategies.client_spec(client).quirks.uncounted


def judge_changes(
    comparison: Comparison,
    thresholds: Sequence[Threshold],
    *,
    strict: bool = False,
) -> list[ThresholdResult]:
    """Judge thresholds for the arms of all runs except the baseline.

    Their figures must be among those compared. Raise FieldError for an unknown arm, and
    for what the schedule of an open load decides.
    """
    thresholds = [replace(threshold, strict=strict) for threshold in thresholds]
    arms = comparison.arms()
    _check_arms(thresholds, arms)
    open_arms = {
        trial.planned.arm
        for trial in comparison.base.trials
        if trial.figures.open_load is not None
    }
    base = f"run {comparison.base.run}"
    results = []
    for threshold in thresholds:
        judged = filter(threshold.applies_to, arms)
        _check_schedule(threshold, [arm for arm in judged if arm in open_arms])
        for other in comparison.others:
            for arm in filter(threshold.applies_to, other.changes):
                result = ThresholdResult(threshold, other.run.run, arm)
                change = other.changes[arm][threshold.figure.key]
                _judge_change(result, other.run, change, base)
                results.append(result)
    return results


def judge_run(
    run: Run,
    thresholds: Sequence[Threshold],
    *,
    strict: bool = False,
) -> list[ThresholdResult]:
    """Judge each limit for each arm, and each change between versions.

    Changes are judged for the arms of all environments and servers but the first. A
    change has the interval that the report shows. Those of all limits together hold the
    truth in 95 of 100 cases.
    """
    thresholds = [replace(threshold, strict=strict) for threshold in thresholds]
    arms = run.experiment.arms
    pairs = version_pairs(arms)
    limits = []
    changes = []
    for threshold in thresholds:
        if threshold.change:
            changes += [
                (ThresholdResult(threshold, run.run, arm.name), (arm, base))
                for arm, base in pairs
                if threshold.applies_to(arm.name)
            ]
        else:
            limits += [
                ThresholdResult(threshold, run.run, arm.name)
                for arm in arms
                if threshold.applies_to(arm.name)
            ]
    level = CONFIDENCE
    if not strict:
        level = divide_error(CONFIDENCE, len(limits))
    for result in limits:
        _judge_limit(result, run, level)
    in_seconds = [result for result, _ in changes if result.threshold.in_seconds]
    level = divide_error(CONFIDENCE, len(in_seconds))
    for result, pair in changes:
        if result.threshold.in_seconds:
            _judge_seconds(result, run, pair, level)
        else:
            _judge_pair(result, run, pair)
    return [*limits, *(result for result, _ in changes)]


def _judge_limit(
    result: ThresholdResult,
    run: Run,
    confidence: float,
) -> None:
    figure = result.threshold.figure
    trials = run.trials_of(result.arm)
    value = figure.over_rounds(trials)
    result.found = value
    if value is None and run.finished_trials_of(result.arm):
        result.leave_open(f"no trial of the arm has a {figure.label}")
        return
    result.count_lost(run)
    result.at_least = figure.less_is_better and figure.is_bound(trials)
    if value is None or result.lost or result.at_least:
        return
    values = figure.values(trials)
    if not figure.of_failed:
        result.interval = typical_estimate(values, confidence).interval
    result.judge(value, result.threshold.edge, exactly=figure.of_failed)
    result.estimate_rounds(typical_figure(dict(enumerate(values)), confidence))
    if result.outcome == "not sure" and result.interval is None:
        result.reason = _too_few_rounds(len(values))


def _judge_pair(
    result: ThresholdResult,
    run: Run,
    pair: ArmPair,
) -> None:
    """Judge how much a figure of an arm changed since the second of the pair.

    That one is in the first environment or server.
    """
    arm, base = pair
    figure = result.threshold.figure
    trials = run.trials_of(arm.name)
    before = run.trials_of(base.name)
    if not figure.of_failed:
        why = shortfall(before)
        if shortfall(trials):
            trials = []  # there is nothing to compare
        elif why:  # an arm that never was at its load is no standard
            result.leave_open(
                f"there is nothing to compare with: {base.name} is not ranked: {why}"
            )
            return
    change = change_of(figure, (before, trials), CONFIDENCE)
    ratio = None
    if figure.unit != "share" and not change.bounded:
        ratio = pair_ratio(run, figure, pair)
    _judge_change(result, run, replace(change, ratio=ratio), base.name)


def _judge_change(
    result: ThresholdResult,
    run: Run,
    change: Change,
    base: str,
) -> None:
    """Judge how much a figure of an arm changed.

    `base`: the run or the arm that it is compared with.
    """
    finished = run.finished_trials_of(result.arm)
    result.count_lost(run)
    if change.bounded:
        result.at_least = change.verdict != "better"
        result.outcome = "failed" if result.at_least else "held"
        return
    is_unranked = not change.rounds[1] and shortfall(finished) is not None
    has_failed = result.lost or not finished or is_unranked
    gap = _find_gap(result.threshold, change, base)
    if gap and not has_failed:
        result.leave_open(gap)
        return
    estimate = change.ratio or change.difference
    if estimate is not None:
        result.found = estimate.value
        result.interval = estimate.interval
    if not has_failed:
        _judge_estimate(result, change)


def _judge_estimate(result: ThresholdResult, change: Change) -> None:
    threshold = result.threshold
    ratio, difference = change.ratio, change.difference
    if difference is not None:
        sign = 1 if change.figure.less_is_better else -1
        is_alone = difference.interval is None
        result.judge(difference.value, sign * threshold.value, exactly=is_alone)
    elif ratio is None:
        # From 0 to more, or from more to 0: no percentage describes such a change.
        is_worse = change.verdict == "worse"
        result.judge(change.after or 0.0, change.before or 0.0, exactly=is_worse)
    else:
        result.judge(ratio.value, threshold.edge)
        is_small = change.verdict == "small" and not threshold.strict
        if result.outcome == "failed" and is_small:
            result.outcome = "not sure"
            result.floor = change.floor
        elif isinstance(ratio, Ratio):
            result.estimate_rounds(ratio)


def _judge_seconds(
    result: ThresholdResult,
    run: Run,
    pair: ArmPair,
    confidence: float,
) -> None:
    """Judge by how many seconds a figure changed since the second of the pair.

    What is unknown of the first fails.
    """
    arm, base = pair
    figure = result.threshold.figure
    difference = pair_difference(run, figure, pair, confidence)
    if difference is not None:
        result.found = difference.value
        result.interval = difference.interval
        result.judge(difference.value, result.threshold.edge)
        if result.outcome == "not sure" and result.interval is None:
            result.reason = "an interval needs more rounds"
        return
    trials = run.finished_trials_of(arm.name)
    result.at_least = figure.has_bounds(trials)
    if result.at_least or not trials:
        return
    if not figure.values(trials):
        result.leave_open(f"no trial of the arm has a {figure.label}")
    elif clean_rounds(run, arm.name, figure.of):
        result.leave_open(
            f"there is nothing to compare with: {base.name} has no {figure.label} in"
            " the same rounds"
        )


def _find_gap(
    threshold: Threshold,
    change: Change,
    base: str,
) -> str | None:
    """Return what is missing to judge a change; None if it can be judged.

    Errors are counted in few rounds, too.
    """
    figure = threshold.figure
    before, after = change.rounds
    if not after:
        return f"no trial of the arm has a {figure.label} that can be compared"
    if not before:
        return f"there is nothing to compare with: {base} has no {figure.label}"
    rounds = min(before, after)
    if isinstance(change.ratio, Ratio):
        rounds = change.ratio.rounds
    if threshold.strict or figure.of_failed or rounds >= FEWEST_ROUNDS:
        return None
    return _too_few_rounds(rounds)


def _too_few_rounds(rounds: int) -> str:
    return (
        f"it has {rounds} of at least {FEWEST_ROUNDS} rounds, so there is no interval;"
        " measure more rounds, or judge by the estimate (report --strict)"
    )
