"""Trials that took far longer, or far less, than the other rounds of their arm make likely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clientlab.analysis.levels import typical_levels
from clientlab.analysis.ratios import FEWEST_ROUNDS
from clientlab.analysis.typical import Floats
from clientlab.judging.cautions.doubted import arms_of
from clientlab.judging.ranking import finished_by_group
from clientlab.results.document import Caution, Run
from clientlab.results.figures import cost_of
from clientlab.results.trial import Trial

FAR = 5.0
"""Robust standard deviations of a group's trials from which on a trial is outlying."""
LEAST = 1.25
"""A trial that took less than this many times as long as expected (or as short) is not outlying."""
LEAST_OF_FEW = 2.0
"""The same where so few trials do not show their usual spread."""

_FEW = 6
_SHOWN = 6
_NORMAL = 1.4826  # a normal distribution's standard deviation over its median distance from the median


@dataclass(frozen=True)
class OutlyingTrial:
    """`times`: the trial's seconds per request over those expected of its arm in its round."""

    trial: Trial
    times: float


def outlying_trials(run: Run) -> list[OutlyingTrial]:
    """The outlying trials of a run, the farthest first. A group needs three rounds."""
    found = [one for trials in finished_by_group(run).values() for one in _of_group(trials)]
    return sorted(found, key=lambda one: -abs(np.log(one.times)))


_WHAT = {False: "trials took much longer or shorter", True: "trials had a much longer or shorter p99, or wall time,"}
"""Whether trials of open loads are among them → how they differ."""


def outlying_caution(run: Run) -> Iterator[Caution]:
    """One caution that names the outlying trials."""
    found = outlying_trials(run)
    if found:
        shown = [f"{one.trial.arm} in round {one.trial.round} ({one.times:.2g} times)" for one in found[:_SHOWN]]
        more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
        yield Caution(
            kind="outlying-trials",
            arms=arms_of(one.trial for one in found),
            text=f"{_WHAT[any(one.trial.open_load for one in found)]} than other rounds of their arms: "
            f"{', '.join([*shown, *more])}",
            advice="ratios are medians over rounds, so one such trial moves them little; "
            "find out what else ran, or measure more rounds",
        )


def _of_group(trials: list[tuple[str, Trial]]) -> Iterator[OutlyingTrial]:
    by_arm: dict[str, dict[int, Trial]] = {}
    for name, trial in trials:
        by_arm.setdefault(name, {})[trial.round] = trial
    rounds = sorted({trial.round for _, trial in trials})
    if len(rounds) < FEWEST_ROUNDS:
        return
    costs = [{number: cost_of(trial) for number, trial in arm.items()} for arm in by_arm.values()]
    logs = np.log([[arm.get(number, np.nan) for number in rounds] for arm in costs], dtype=np.float64)
    away = _residuals(logs - typical_levels(costs)[:, None])
    usual = _NORMAL * float(np.nanmedian(np.abs(away)))
    degrees = np.count_nonzero(~np.isnan(away)) - len(by_arm)
    limit = max(FAR * usual, np.log(LEAST if degrees >= _FEW else LEAST_OF_FEW))
    for arm, row in zip(by_arm.values(), away, strict=True):
        for number, distance in zip(rounds, row.tolist(), strict=True):
            if abs(distance) > limit:
                yield OutlyingTrial(arm[number], float(np.exp(distance)))


def _residuals(deviations: Floats) -> Floats:
    """Deviations (arm, round) from the arms' levels, without what a round did to most of three arms or more."""
    if len(deviations) < 3:
        return deviations - np.nanmedian(deviations, axis=1, keepdims=True)
    return deviations - np.nanmedian(deviations, axis=0, keepdims=True)
