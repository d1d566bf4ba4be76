"""How often the interval of a ratio of spreads holds the ratio of the typical differences between two rounds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.figures import BenchmarkRow
from benchmarks.truth.noise import MODELS, Model
from benchmarks.truth.shares import covered
from clientlab.analysis.spread import spread_interval

ROUNDS = (6, 8, 12, 20)
_RUNS = 4_000


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """A row for each model of noise and number of rounds."""
    for name, model in MODELS.items():
        truth = true_ratio(model)
        for rounds in ROUNDS:
            logs = model(np.random.default_rng([seed, rounds]), (_RUNS, 2, rounds))
            _, low, high = spread_interval(logs[:, 1], logs[:, 0])
            yield covered(f"ratio of spreads, {name}, {rounds} rounds", (low <= truth) & (high >= truth))


def true_ratio(model: Model) -> float:
    """The last arm's typical difference between two rounds over the first's, from very many pairs of rounds."""
    logs = model(np.random.default_rng(0), (400_000, 2, 2))
    first, last = (float(np.median(np.abs(logs[:, arm, 0] - logs[:, arm, 1]))) for arm in (0, 1))
    return last / first
