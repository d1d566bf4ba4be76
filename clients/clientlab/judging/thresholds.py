"""Thresholds that fail a build: a limit of a figure (`p99 > 50ms`), or a change of it
(`p99 +10%`, `p50 +2ms`).

A threshold fails if a whole interval is beyond it, or with `strict` if the estimate is.
The errors of a single run are counted instead of estimated, so their share decides, and
a failed trial fails them. An arm without a finished trial fails. What cannot be judged,
because a figure or an interval is missing, is not sure, with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from clientlab import strategies
from clientlab.errors import FieldError, IncompleteRun
from clientlab.judging.comparison import Change, Comparison, change_of, simultaneous
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
    """A threshold.

    `value`: a share for a `change`, else in the figure's unit. `arm`: the only one it
    is for.

    `in_seconds`: the value of a change is, too.
    """

    text: str
    figure: Figure
    value: float
    change: bool
    arm: str | None = None
    in_seconds: bool = False

    @property
    def edge(self) -> float:
        """The limit; for a change, the ratio that is just allowed."""
        if not self.change or self.in_seconds:
            return self.value
        return 1 + self.value if self.figure.less_is_better else 1 - self.value

    def applies_to(self, arm: str) -> bool:
        return self.arm is None or self.arm == arm

    def judge(
        self, value: float, edge: float, interval: Interval | None, *, strict: bool
    ) -> ThresholdOutcome:
        """Compare a value with an edge.

        Without an interval, a value beyond the edge fails only if `strict`.
        """
        sign = 1 if self.figure.less_is_better else -1
        if sign * value <= sign * edge:
            return "held"
        if strict or (
            interval is not None and min(sign * end for end in interval) > sign * edge
        ):
            return "failed"
        return "not sure"


@dataclass(frozen=True)
class ThresholdResult:
    """The outcome of a threshold for an arm of a run.

    "not sure": the estimate is beyond the threshold, but a part of its `interval` is
    not; about `rounds` rounds would decide, unless the change is less than the `floor`
    by which runs may differ.

    `found`: the figure; for a change the ratio, or the difference of a share. `lost`:
    failed trials, if the threshold is about errors. `at_least`: the figure is a lower
    bound, which fails unless it surely is for the better. `reason`: why it cannot be
    judged; None if it is.
    """

    threshold: Threshold
    run: str
    arm: str
    outcome: ThresholdOutcome
    found: float | None
    lost: int = 0
    at_least: bool = False
    interval: Interval | None = None
    rounds: int | None = None
    floor: float = 0.0
    reason: str | None = None


def exit_code_of(results: Sequence[ThresholdResult]) -> int:
    """Return 1 if a threshold failed, 3 if one of the others cannot be judged, and 0
    otherwise.
    """
    if any(result.outcome == "failed" for result in results):
        return 1
    return IncompleteRun.exit_code if any(result.reason for result in results) else 0


def parse_threshold(text: str) -> Threshold:
    """Parse ``p99 > 50ms``, ``errors > 0`` or ``p99 +10%``; ``ARM: p99 > 50ms`` for one
    arm.

    Raise FieldError.
    """
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise _refusal(
            text,
            "write a figure and its limit, as 'p99 > 50ms', or a change, as 'p99 +10%'",
        )
    arm, name, sign, number, unit = match.groups()
    figure, is_change = find(name, "fail_on", repr(text)), sign in "+-"
    worse = (
        ("+" if is_change else "> ")
        if figure.less_is_better
        else ("-" if is_change else "< ")
    )
    if sign != worse.strip():
        raise _refusal(
            text, f"it would fail good results; write {name} {worse}{number}{unit}"
        )
    in_seconds = is_change and figure.unit == "seconds" and unit in WRITTEN["seconds"]
    sizes = {"%": 0.01} if is_change and not in_seconds else WRITTEN[figure.unit]
    if unit not in sizes and (unit or float(number)):
        how = (
            f"write the change in percent, as {name} {worse}10%" if is_change else None
        )
        raise _refusal(text, how or wanted(figure.unit, f"{name} {sign} {number}"))
    return Threshold(
        text, figure, float(number) * sizes.get(unit, 1.0), is_change, arm, in_seconds
    )


def parse_change(text: str) -> Threshold:
    """Parse ``p99 +10%``, ``throughput -5%`` or ``errors +0``.

    Raise FieldError for anything else.
    """
    threshold = parse_threshold(text)
    if not threshold.change:
        raise _refusal(
            threshold.text, "write a change, as 'p99 +10%' or 'throughput -5%'"
        )
    if threshold.in_seconds:
        raise _refusal(
            threshold.text,
            "only servers or environments of one run have it; write a change in"
            " percent",
        )
    return threshold


def _refusal(text: str, message: str) -> FieldError:
    return FieldError(["fail_on"], message, value=repr(text))


def check_limits(thresholds: Sequence[Threshold], plan: Plan) -> None:
    """Raise FieldError for a threshold that no run of the plan can be judged by."""
    check_changes(thresholds, plan)
    for one in thresholds:
        # With a budget, rounds are added.
        fewest = (
            fewest_rounds(one.figure)
            if one.in_seconds and plan.budget is None
            else FEWEST_ROUNDS
        )
        if plan.rounds < fewest and not one.figure.of_failed:
            raise _refusal(
                one.text,
                f"an interval needs {fewest} rounds, not {plan.rounds}; raise `rounds`",
            )
        for arm in plan.arms:
            if one.applies_to(arm.name) and (
                advice := _find_missing(one.figure, plan, arm)
            ):
                raise _refusal(
                    one.text,
                    f"arm {arm.name!r} will have no {one.figure.label}; {advice}",
                )


def _check_arms(thresholds: Sequence[Threshold], arms: Sequence[str]) -> None:
    for one in thresholds:
        if one.arm is not None and one.arm not in arms:
            raise _refusal(
                one.text, f"no arm is named {one.arm!r}{suggest_nearest(one.arm, arms)}"
            )


def check_changes(thresholds: Sequence[Threshold], plan: Plan) -> None:
    """Raise FieldError for an unknown arm, and for a change that no two environments or
    servers can show.
    """
    _check_arms(thresholds, [arm.name for arm in plan.arms])
    pairs = version_pairs(plan.arms)
    for one in thresholds:
        judged = [arm for arm, _ in pairs if one.change and one.applies_to(arm.name)]
        if one.change and not judged:
            where = "this run" if one.arm is None else f"arm {one.arm!r}"
            advice = "name two with `environments` or `url`, or write a limit"
            raise _refusal(
                one.text, f"{where} has no earlier environment or server; {advice}"
            )
        _check_schedule(
            one, [arm.name for arm in judged if is_open(plan.workloads[arm.workload])]
        )


def _check_schedule(one: Threshold, open_arms: Sequence[str]) -> None:
    if open_arms and one.figure.scheduled:
        raise _refusal(
            one.text,
            f"the schedule of arm {open_arms[0]!r} decides it; judge p99 or"
            " achieved_rate",
        )


def _find_missing(figure: Figure, plan: Plan, arm: Arm) -> str | None:
    """Return what to do so that trials of the arm have the figure; None if
    they will.
    """
    workload = plan.workloads[arm.workload]
    if figure is HIGHEST_RATE and plan.find_max is None:
        return "set `find_max`"
    if not figure.is_known(workload, arm.link):
        return f"set `{figure.needs}`"
    if figure in OPEN_LOAD_FIGURES and not is_open(workload):
        return "set `rate`"
    if (
        figure.key in _OF_CONNECTIONS
        and strategies.client_spec(
            strategies.find(arm.strategy).client
        ).quirks.uncounted
    ):
        return "its library hides its connections; name another arm"
    fewest = (
        FEWEST_REQUESTS.get(figure.key, 0) if plan.find_max is None else 0
    )  # a search sends enough
    requests = expected_requests(workload) if fewest else None
    if requests is not None and requests < fewest:
        return (
            f"it takes {fewest:,} requests per trial, not {requests:,}; send more"
            " (`requests`)"
        )
    return None


def judge_changes(
    comparison: Comparison, thresholds: Sequence[Threshold], *, strict: bool = False
) -> list[ThresholdResult]:
    """Judge thresholds for the arms of all runs except the baseline.

    Their figures must be among those compared.

    Raise FieldError for an unknown arm, and for what the schedule of an open load
    decides.
    """
    _check_arms(thresholds, comparison.arms())
    open_arms = {
        trial.planned.arm
        for trial in comparison.base.trials
        if trial.figures.open_load is not None
    }
    for one in thresholds:
        _check_schedule(
            one,
            [
                arm
                for arm in comparison.arms()
                if arm in open_arms and one.applies_to(arm)
            ],
        )
    return [
        _judge_change(
            one,
            other.run,
            arm,
            changes[one.figure.key],
            f"run {comparison.base.run}",
            strict=strict,
        )
        for one in thresholds
        for other in comparison.others
        for arm, changes in other.changes.items()
        if one.applies_to(arm)
    ]


def _judge_change(  # noqa: PLR0913 - what changed, and what it is compared with
    one: Threshold, run: Run, arm: str, change: Change, base: str, *, strict: bool
) -> ThresholdResult:
    """Judge how much a figure of an arm changed.

    `base`: the run or the arm that it is compared with.
    """
    finished = run.finished_trials_of(arm)
    lost = len(failed_for_good(run, arm)) if one.figure.of_failed else 0
    has_failed = (
        bool(lost)
        or not finished
        or (not change.rounds[1] and shortfall(finished) is not None)
    )
    if (
        not has_failed
        and not change.bounded
        and (reason := _find_gap(one.figure, change, base, strict=strict))
    ):
        return ThresholdResult(one, run.run, arm, "not sure", None, reason=reason)
    ratio = change.ratio
    if ratio is not None and not isinstance(ratio, Ratio):
        ratio = Ratio(
            ratio.value,
            ratio.low,
            ratio.high,
            min(change.rounds),
            change.confidence,
            pooled=True,
        )
    outcome: ThresholdOutcome = "failed"
    is_small = False
    if change.bounded:
        outcome = "held" if change.verdict == "better" else "failed"
    elif has_failed:
        pass
    elif change.difference is not None:
        allowed = one.value if one.figure.less_is_better else -one.value
        interval = change.difference.interval
        outcome = one.judge(
            change.difference.value,
            allowed,
            interval,
            strict=strict or interval is None,
        )
    elif (
        ratio is None
    ):  # from 0 to more, or from more to 0: no percentage describes such a change
        is_sure = strict or change.verdict == "worse"
        outcome = one.judge(
            change.after or 0.0, change.before or 0.0, None, strict=is_sure
        )
    else:
        outcome = one.judge(ratio.value, one.edge, ratio.interval, strict=strict)
        if outcome == "failed" and change.verdict == "small" and not strict:
            outcome, is_small = "not sure", True
    estimate = ratio or change.difference
    interval = None if estimate is None else estimate.interval
    found, at_least = (
        estimate.value if estimate else None,
        change.bounded and outcome == "failed",
    )
    needed = (
        None if change.earlier or is_small else _rounds_to_decide(one, outcome, ratio)
    )
    floor = change.floor if is_small else 0.0
    return ThresholdResult(
        one, run.run, arm, outcome, found, lost, at_least, interval, needed, floor
    )


def judge_run(
    run: Run, thresholds: Sequence[Threshold], *, strict: bool = False
) -> list[ThresholdResult]:
    """Judge each limit for each arm, and each change for the arms of all environments
    and servers but the first.

    A change has the interval that the report shows. Those of all limits together hold
    the truth in 95 of 100 cases.
    """
    names = [arm.name for arm in run.experiment.arms]
    limits = [
        (one, arm)
        for one in thresholds
        if not one.change
        for arm in names
        if one.applies_to(arm)
    ]
    pairs = version_pairs(run.experiment.arms)
    changes = [
        (one, pair)
        for one in thresholds
        if one.change
        for pair in pairs
        if one.applies_to(pair[0].name)
    ]
    level = CONFIDENCE if strict else simultaneous(len(limits))
    alone = simultaneous(sum(one.in_seconds for one, _ in changes))
    return [
        *(_judge_limit(run, one, arm, level, strict=strict) for one, arm in limits),
        *(
            (
                _judge_seconds(run, one, pair, alone, strict=strict)
                if one.in_seconds
                else _judge_pair(run, one, pair, strict=strict)
            )
            for one, pair in changes
        ),
    ]


def _judge_limit(
    run: Run, one: Threshold, arm: str, confidence: float, *, strict: bool
) -> ThresholdResult:
    figure, trials = one.figure, run.trials_of(arm)
    lost = len(failed_for_good(run, arm)) if figure.of_failed else 0
    found, values = figure.over_rounds(trials), figure.values(trials)
    if found is None and run.finished_trials_of(arm):
        return ThresholdResult(
            one,
            run.run,
            arm,
            "not sure",
            None,
            reason=f"no trial of the arm has a {figure.label}",
        )
    is_bound = figure.less_is_better and figure.is_bound(trials)
    interval = None
    if found is not None and not is_bound and not figure.of_failed:
        interval = typical_estimate(values, confidence).interval
    outcome: ThresholdOutcome = "failed"
    if found is not None and not lost and not is_bound:
        outcome = one.judge(
            found, one.edge, interval, strict=strict or figure.of_failed
        )
    reason = (
        _too_few_rounds(len(values))
        if outcome == "not sure" and interval is None
        else None
    )
    rounds = _rounds_to_decide(
        one, outcome, typical_figure(dict(enumerate(values)), confidence)
    )
    return ThresholdResult(
        one,
        run.run,
        arm,
        outcome,
        found,
        lost,
        is_bound,
        interval,
        rounds,
        reason=reason,
    )


def _judge_pair(
    run: Run, one: Threshold, pair: ArmPair, *, strict: bool
) -> ThresholdResult:
    """Judge how much a figure of an arm changed since the second of the pair, in the
    first environment or server.
    """
    arm, base = (each.name for each in pair)
    trials, before = run.trials_of(arm), run.trials_of(base)
    is_counted = one.figure.of_failed
    if not is_counted and shortfall(trials):
        trials = []  # there is nothing to compare
    elif not is_counted and (
        why := shortfall(before)
    ):  # an arm that never was at its load is no standard
        reason = f"there is nothing to compare with: {base} is not ranked: {why}"
        return ThresholdResult(one, run.run, arm, "not sure", None, reason=reason)
    change = change_of(one.figure, (before, trials), CONFIDENCE)
    has_ratio = one.figure.unit != "share" and not change.bounded
    paired = pair_ratio(run, one.figure, pair) if has_ratio else None
    return _judge_change(
        one, run, arm, replace(change, ratio=paired), base, strict=strict
    )


def _judge_seconds(
    run: Run, one: Threshold, pair: ArmPair, confidence: float, *, strict: bool
) -> ThresholdResult:
    """Judge by how many seconds a figure changed since the second of the pair; what is
    unknown of the first fails.
    """
    name, base = (arm.name for arm in pair)
    found = pair_difference(run, one.figure, pair, confidence)
    if found is not None:
        outcome = one.judge(found.value, one.edge, found.interval, strict=strict)
        is_unknown = outcome == "not sure" and found.interval is None
        reason = "an interval needs more rounds" if is_unknown else None
        return ThresholdResult(
            one,
            run.run,
            name,
            outcome,
            found.value,
            interval=found.interval,
            reason=reason,
        )
    trials, label = run.finished_trials_of(name), one.figure.label
    is_bound = one.figure.has_bounds(trials)
    has_figure = bool(one.figure.values(trials))
    if (
        is_bound
        or not trials
        or (has_figure and not clean_rounds(run, name, one.figure.of))
    ):
        return ThresholdResult(one, run.run, name, "failed", None, at_least=is_bound)
    reason = f"no trial of the arm has a {label}"
    if has_figure:
        reason = (
            f"there is nothing to compare with: {base} has no {label} in the same"
            " rounds"
        )
    return ThresholdResult(one, run.run, name, "not sure", None, reason=reason)


def _rounds_to_decide(
    one: Threshold, outcome: ThresholdOutcome, ratio: Ratio | None
) -> int | None:
    """Return about how many rounds would decide an outcome that is not sure; None if it
    is, or if nobody knows.
    """
    if outcome != "not sure" or ratio is None or min(ratio.value, one.edge) <= 0:
        return None
    return rounds_for_edge(ratio, one.edge)


def _find_gap(figure: Figure, change: Change, base: str, *, strict: bool) -> str | None:
    """Return what is missing to judge a change; None if it can be judged.

    Errors are counted in few rounds, too.
    """
    if not change.rounds[1]:
        return f"no trial of the arm has a {figure.label} that can be compared"
    if not change.rounds[0]:
        return f"there is nothing to compare with: {base} has no {figure.label}"
    rounds = (
        change.ratio.rounds if isinstance(change.ratio, Ratio) else min(change.rounds)
    )
    if strict or figure.of_failed or rounds >= FEWEST_ROUNDS:
        return None
    return _too_few_rounds(rounds)


def _too_few_rounds(rounds: int) -> str:
    return (
        f"it has {rounds} of at least {FEWEST_ROUNDS} rounds, so there is no interval; "
        "measure more rounds, or judge by the estimate (report --strict)"
    )
