"""What faults of the upstream did to each arm: how many calls succeeded, how many
attempts they took, and when an arm was back after an outage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np

from clientlab import units
from clientlab.reports.rows import Report
from clientlab.reports.sections import (
    ChartRow,
    Charts,
    DataTable,
    Lines,
    Part,
    RowChart,
    Section,
    Tables,
    colours_of,
)
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from clientlab.results.trial import Attempts, Trial
from clientlab.statistics.histogram import SLICES

_NO_STATUS = "0"
_LATE = 0.1
"""Seconds from which the limit of a call counts as not kept."""

_NOTE = (
    "A call is one request as the caller sees it, with all its attempts; req/s counts"
    " successful calls (goodput), errors are calls that were lost. The upstream counts"
    " attempts and duplicates itself. Behind a proxy, the client sees what the proxy"
    " makes of a fault: 502 or 504."
)


def faults(report: Report) -> Section:
    """Return a sentence for each arm, a chart over time, and what both sides saw."""
    run = report.run
    arms = {}
    for arm in run.experiment.arms:
        trials = [
            trial
            for trial in run.finished_trials_of(arm.name)
            if trial.attempts is not None
        ]
        if trials:
            arms[arm.name] = trials
    parts: list[Part] = [
        Lines([_sentence(name, trials) for name, trials in arms.items()]),
        Charts(lambda: _charts(run, arms)),
        Tables(
            [
                _seen_table("What the upstream did", "kinds", arms),
                _seen_table(
                    "Last status that calls had at the client", "statuses", arms
                ),
            ]
            if arms
            else []
        ),
        Lines([_NOTE] if arms else [], brief=False),
    ]
    return Section("faults", "When things fail", parts, label="Faults", brief=True)


def _sentence(name: str, trials: Sequence[Trial]) -> str:
    """Return how many calls of an arm were lost, and what the others took."""
    calls = sum(trial.figures.requests for trial in trials)
    lost = sum(trial.figures.failed for trial in trials)
    per_call = BY_KEY["attempts"].over_rounds(trials)
    repeated = sum(attempts.repeated for attempts in _attempts_of(trials))
    text = f"{name}: none of {calls:,} calls was lost"
    if lost:
        text = f"{name}: {lost:,} of {calls:,} calls were lost"
        text += f" ({units.share(lost / calls)})"
    if per_call is not None:
        text += f", with {units.digits(per_call)} attempts per call"
    if repeated:
        text += f"; work was done again {repeated:,} times"
    late = BY_KEY["limit_late"].over_rounds(trials)
    if late is not None and late >= _LATE:
        text += f"; the limit of a call was not kept, by up to {units.time(late)}"
    return f"{text}{''.join(_recoveries(trials))}."


def _recoveries(trials: Sequence[Trial]) -> Iterator[str]:
    """Yield when an arm was back at 90 % of its rate: the median over the rounds."""
    by_state: dict[str, list[float | None]] = {}
    for attempts in _attempts_of(trials):
        for recovery in attempts.recoveries:
            if recovery.rate_before:
                by_state.setdefault(recovery.state, []).append(recovery.seconds)
    for state, rounds in by_state.items():
        known = [seconds for seconds in rounds if seconds is not None]
        never = len(rounds) - len(known)
        if 2 * never >= len(rounds):
            yield f"; it did not come back to 90 % of its rate after {state}"
        else:
            yield (
                f"; back at 90 % of its rate {units.time(median(known))} after {state}"
            )


def _attempts_of(trials: Sequence[Trial]) -> list[Attempts]:
    return [trial.attempts for trial in trials if trial.attempts is not None]


def _seen_table(title: str, field: str, arms: dict[str, list[Trial]]) -> DataTable:
    """Return the counts of a field of `Attempts` over all rounds of each arm."""
    by_arm = {}
    for name, trials in arms.items():
        counts: Counter[str] = Counter()
        for attempts in _attempts_of(trials):
            counts.update(getattr(attempts, field))
        counts += Counter()  # without those that did not happen
        by_arm[name] = counts
    kinds = list(dict.fromkeys(kind for counts in by_arm.values() for kind in counts))
    heads = ["none" if kind == _NO_STATUS else kind for kind in kinds]
    rows = [
        [name, *(f"{counts[kind]:,}" for kind in kinds)]
        for name, counts in by_arm.items()
    ]
    return DataTable(["arm", *heads], rows, title)


def _charts(run: Run, arms: dict[str, list[Trial]]) -> Iterator[RowChart]:
    """Yield the calls and attempts of each arm per second, over the time of a trial.

    Arms are drawn together if their trials last equally long.
    """
    colours = colours_of(run)
    of_workload: dict[str, list[str]] = {}
    for name, trials in arms.items():
        of_workload.setdefault(trials[0].planned.workload, []).append(name)
    for workload_name, names in of_workload.items():
        workload = run.experiment.workloads[workload_name]
        if workload.load.duration is None or workload.faults is None:
            continue
        courses = {name: _courses_of(arms[name]) for name in names}
        most = max(course.max() for of in courses.values() for course in of.values())
        if not most:
            continue
        rows = []
        for name, of_arm in courses.items():
            rows += [
                ChartRow(
                    f"{name}: {what}",
                    f"at most {units.rate(float(course.max()))}/s",
                    colours[name],
                    heights=(course / most).tolist(),
                )
                for what, course in of_arm.items()
            ]
        end = max(trial.wall_seconds for name in names for trial in arms[name])
        yield RowChart(
            f"Calls and attempts per second · {workload_name}",
            rows,
            [f"faults: {workload.faults}"],
            0.0,
            end,
            units.time,
            edges=np.linspace(0.0, end, SLICES + 1).tolist(),
            bands=[(state.begin, state.end) for state in workload.faults.states],
        )


def _courses_of(trials: Sequence[Trial]) -> dict[str, np.ndarray]:
    """Return successes, failures and attempts per second in each slice: means of all
    rounds.
    """
    successes = np.zeros(SLICES)
    failures = np.zeros(SLICES)
    attempts = np.zeros(SLICES)
    seconds = 0.0
    for trial in trials:
        if trial.attempts is None or len(trial.figures.over_time) != SLICES:
            continue
        requests = np.array([part.requests for part in trial.figures.over_time])
        errors = np.array([part.errors for part in trial.figures.over_time])
        successes += requests - errors
        failures += errors
        attempts += np.array(trial.attempts.over_time)
        seconds += trial.wall_seconds / SLICES
    per_second = max(seconds, 1e-9)
    return {
        "successes": successes / per_second,
        "failures": failures / per_second,
        "attempts": attempts / per_second,
    }
