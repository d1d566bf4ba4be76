"""Thresholds that fail a build: of a change between two runs (`p99 +10%`), or of a run's own figures (`p99 > 50ms`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from clientlab.analysis.ratios import FEWEST_ROUNDS
from clientlab.errors import LabError
from clientlab.runs.changes import Change, Comparison
from clientlab.runs.document import Run
from clientlab.runs.failures import failed_for_good
from clientlab.runs.quantities import Quantity, Unit, figures_of, quantity

_CHANGE = re.compile(r"\s*(\w+)\s*([+-])\s*(\d+(?:\.\d+)?)\s*(%?)\s*")
_LIMIT = re.compile(r"\s*(\w+)\s*([<>])\s*(\d+(?:\.\d+)?)\s*([^\s\d]*)\s*")
_UNITS: dict[Unit, dict[str, float]] = {
    "seconds": {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0},
    "per-second": {"": 1.0, "/s": 1.0},
    "bytes": {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
    "count": {"": 1.0},
    "share": {"%": 0.01},
}

Outcome = Literal["held", "failed", "not sure"]


@dataclass(frozen=True)
class Threshold:
    """`text` as it was written; `value`: a share for a `change`, or in the quantity's unit for a limit."""

    text: str
    quantity: Quantity
    value: float
    change: bool


@dataclass(frozen=True)
class Judged:
    """A threshold held against an arm of a run. `found`: the ratio (errors: the difference) or the figure.

    "not sure": the estimate is beyond it and its interval is not. `lost`: trials of the arm that failed, where errors
    are judged: none of their requests, or not all, were counted, and that is no success.
    """

    threshold: Threshold
    run: str
    arm: str
    outcome: Outcome
    found: float | None
    lost: int = 0


def change_threshold(text: str) -> Threshold:
    """``p99 +10%``, ``throughput -5%``, ``errors +0``. Raises LabError."""
    about, (name, sign, number, percent) = _read(text, _CHANGE, "a change, as 'p99 +10%' or 'throughput -5%'")
    worse = "+" if about.less_is_better else "-"
    if sign != worse:
        raise LabError(f"--fail-on {text!r}: that is the good direction; write {name} {worse}{number}{percent}")
    if not percent and float(number):
        raise LabError(f"--fail-on {text!r}: write the change in percent, as {name} {worse}10%")
    return Threshold(text, about, float(number) / 100, change=True)


def limit(text: str) -> Threshold:
    """``p99 > 50ms``, ``throughput < 1000``, ``errors > 0``. Raises LabError."""
    about, (name, sign, number, unit) = _read(text, _LIMIT, "its limit, as 'p99 > 50ms' or 'throughput < 1000'")
    worse = ">" if about.less_is_better else "<"
    if sign != worse:
        raise LabError(f"--fail-on {text!r}: it would fail what is good; write {name} {worse} {number}{unit}")
    units = _UNITS[about.unit]
    if unit not in units and float(number):
        raise LabError(f"--fail-on {text!r}: write it in {' or '.join(filter(None, units)) or 'a bare number'}")
    return Threshold(text, about, float(number) * units.get(unit, 1.0), change=False)


def _read(text: str, pattern: re.Pattern[str], wanted: str) -> tuple[Quantity, tuple[str, ...]]:
    """The figure that is meant, and the parts of the pattern."""
    match = pattern.fullmatch(text)
    if match is None:
        raise LabError(f"--fail-on {text!r}: write a figure and {wanted}")
    return quantity(match[1], f"--fail-on {text!r}"), match.groups()


def judge_changes(comparison: Comparison, thresholds: Sequence[Threshold], *, strict: bool) -> list[Judged]:
    """Every threshold against every arm of every run but the baseline.

    A threshold fails where the change is surely beyond it: its whole interval; `strict`: the estimate
    alone. Errors are counted and not estimated: what is counted decides, and a trial that failed fails them.
    An arm without a finished trial fails. Raises LabError where there is no interval to judge by.
    """
    return [
        Judged(one, compared.run.run, arm, outcome, _found(change), lost)
        for one in thresholds
        for compared in comparison.others
        for arm, changes in compared.changes.items()
        for change in [changes[one.quantity.name]]
        for lost in [_lost(one, compared.run, arm)]
        for outcome in ["failed" if lost else _outcome(one, change, arm, strict=strict)]
    ]


def judge_limits(run: Run, limits: Sequence[Threshold]) -> list[Judged]:
    """Every limit against every arm: by the median over its rounds, as the report shows it; errors over all of them."""
    return list(_limits(run, limits))


def _limits(run: Run, limits: Sequence[Threshold]) -> Iterator[Judged]:
    for one in limits:
        for arm in run.experiment.arms:
            trials = [trial for trial in run.trials if trial.arm == arm.name]
            values = figures_of(one.quantity, trials)
            if not values and any(trial.status == "done" for trial in trials):
                raise LabError(f"--fail-on {one.text!r}: run {run.run} has no {one.quantity.says} for arm {arm.name!r}")
            found = _over_rounds(one.quantity, values)
            less = one.quantity.less_is_better
            lost = _lost(one, run, arm.name)
            beyond = found is None or lost or _beyond(found, one.value, less=less)
            yield Judged(one, run.run, arm.name, "failed" if beyond else "held", found, lost)


def _lost(one: Threshold, run: Run, arm: str) -> int:
    return len(failed_for_good(run, arm)) if one.quantity.unit == "share" else 0


def _over_rounds(about: Quantity, values: list[float]) -> float | None:
    if not values:
        return None
    return sum(values) / len(values) if about.unit == "share" else median(values)


def _outcome(one: Threshold, change: Change, arm: str, *, strict: bool) -> Outcome:
    if not change.rounds[1]:
        return "failed"
    if not change.rounds[0]:
        raise LabError(f"--fail-on {one.text!r}: the baseline has no {one.quantity.says} for arm {arm!r}")
    if change.difference is not None:
        return "failed" if change.difference.value > one.value else "held"
    if not strict and min(change.rounds) < FEWEST_ROUNDS:
        raise LabError(
            f"--fail-on {one.text!r}: arm {arm!r} has {min(change.rounds)} of at least {FEWEST_ROUNDS} rounds, so "
            "there is no interval; measure more rounds, or judge by the bare ratio with --strict"
        )
    ratio, less = change.ratio, one.quantity.less_is_better
    if ratio is None:  # of nothing to something, or the other way round: no percentage says how much that is
        if not _beyond(change.after or 0.0, change.before or 0.0, less=less):
            return "held"
        return "failed" if strict or change.verdict == "worse" else "not sure"
    edge = 1 + one.value if less else 1 - one.value
    surely = ratio.low if less else ratio.high
    if _beyond(ratio.value, edge, less=less):
        return "failed" if strict or (surely is not None and _beyond(surely, edge, less=less)) else "not sure"
    return "held"


def _beyond(value: float, edge: float, *, less: bool) -> bool:
    return value > edge if less else value < edge


def _found(change: Change) -> float | None:
    estimate = change.ratio or change.difference
    return None if estimate is None else estimate.value
