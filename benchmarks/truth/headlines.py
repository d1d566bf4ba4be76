"""How often the headline of a run of equal arms names one that is surely slower, and who is called the fastest."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from benchmarks.figures import BenchmarkRow
from benchmarks.truth.noise import MODELS, Floats
from benchmarks.truth.shares import false, without_target
from clientlab.analysis.decisions import decision_of
from clientlab.analysis.precision import DECIDED_CONFIDENCE
from clientlab.analysis.ratios import CONFIDENCE
from clientlab.analysis.standings import GroupKey, Standing, TrialCost, standings
from clientlab.running.due import FIRST_LOOK

ARMS, ROUNDS = (8, 16), (3, 5, 10, 20)
_RUNS = 1_000
_BUDGETS = (8, 20)
"""Rounds after which the time of a budget is up."""

_BUDGET_RUNS = 300
"""Each is judged after each of its rounds, so fewer than the others: they take four minutes in all."""

_GROUP = GroupKey("workload", "aiohttp", "direct")


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """A row for each model of noise, number of arms and rounds."""
    for name, model in MODELS.items():
        for arms in ARMS:
            for rounds in ROUNDS:
                logs = model(np.random.default_rng([seed, arms, rounds]), (_RUNS, arms, rounds))
                wrong = np.array([names_a_slower(ranked(run)) for run in logs])
                yield false(f"false headline, {arms} equal arms, {name}, {rounds} rounds", wrong)
            for rounds in _BUDGETS:
                logs = model(np.random.default_rng([seed, arms, rounds, 1]), (_BUDGET_RUNS, arms, rounds))
                wrong = np.array([names_a_slower(with_budget(run)) for run in logs])
                yield false(f"false headline, {arms} equal arms, {name}, a budget for {rounds} rounds", wrong)
    for slower in (1.1, 1.3):
        logs = MODELS["clean"](np.random.default_rng([seed, 1]), (_RUNS, 8, 5))
        logs[:, -1] += np.log(slower)
        seen = np.array([names_a_slower(ranked(run)) for run in logs])
        yield without_target(f"headline names the one of 8 arms that is {slower:g} times as slow, 5 rounds", seen)


def ranked(logs: Floats, confidence: float = CONFIDENCE) -> list[Standing]:
    """The standings of one run; shape (arms, rounds), NaN where an arm was not measured."""
    costs = [
        TrialCost(f"arm {arm}", _GROUP, number, seconds, errors=0)
        for arm, row in enumerate(np.exp(logs).tolist())
        for number, seconds in enumerate(row, start=1)
        if not math.isnan(seconds)
    ]
    return standings(costs, confidence)[_GROUP]


def with_budget(logs: Floats) -> list[Standing]:
    """The standings of a run with a budget: an arm is measured until its comparisons are decided at 99.9 %.

    The rule is that of `judging.undecided`, for one group of arms.
    """
    seen = logs.copy()
    open_arms = np.ones(len(logs), dtype=np.bool_)
    for rounds in range(FIRST_LOOK, logs.shape[1]):
        still = set()
        for row in ranked(seen[:, :rounds], DECIDED_CONFIDENCE):
            if not row.fastest and decision_of(row.ratio).word == "undecided":
                still |= {row.name, row.reference}
        open_arms &= [f"arm {arm}" in still for arm in range(len(logs))]
        seen[~open_arms, rounds:] = np.nan
        if not open_arms.any():
            return ranked(seen[:, :rounds])
    return ranked(seen)


def names_a_slower(rows_of_run: list[Standing]) -> bool:
    """Whether some interval excludes 1. A ratio below 1 counts as well: it contradicts the ranking."""
    return any(
        row.ratio is not None and ((row.ratio.low or 0) > 1 or row.ratio.value < 1 - 1e-9) for row in rows_of_run
    )
