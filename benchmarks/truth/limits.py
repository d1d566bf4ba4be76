"""How often `report --fail-on` fails a run whose arms all have the limit itself as their typical figure.

The typical figure of a single arm is the median over its rounds, outlying ones included.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.figures import BenchmarkRow
from benchmarks.truth.comparisons import STRATEGIES, drawn_run
from benchmarks.truth.noise import MODELS
from benchmarks.truth.shares import false
from clientlab.judging.thresholds import judge_limits, limit

_RUNS = 1_000


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """A row for each number of arms and rounds."""
    wall = limit("wall > 1s")
    for name in ("clean", "heavy tails", "outliers in all arms"):
        middle = np.median(MODELS[name](np.random.default_rng(0), (400_000, 1, 1)))
        for arms in (1, len(STRATEGIES)):
            for rounds in (3, 5, 10):
                draw = np.random.default_rng([seed, arms, rounds])
                values = np.exp(MODELS[name](draw, (_RUNS, arms, rounds)) - middle)
                runs = (drawn_run(one[:, None, :], ("wall",)) for one in values)
                wrong = np.array([any(one.outcome == "failed" for one in judge_limits(run, [wall])) for run in runs])
                yield false(f"--fail-on fails at the limit, {arms} arms, {name}, {rounds} rounds", wrong)
