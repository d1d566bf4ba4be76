"""How often the interval of a typical ratio holds it: planned rounds, and rounds that end with a precision."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.figures import BenchmarkRow
from benchmarks.truth.noise import MODELS, Floats
from benchmarks.truth.shares import covered
from clientlab.analysis.precision import FEWEST_ROUNDS, SEQUENTIAL_CONFIDENCE, narrow_enough
from clientlab.analysis.ratios import CONFIDENCE
from clientlab.analysis.typical import typical, typical_interval

ROUNDS = (3, 5, 10, 20)
PRECISIONS = (0.03, 0.1)
MOST_ROUNDS = 60
"""A time budget ends a sequential run after so many rounds."""
_RUNS = 20_000
_SEQUENTIAL_RUNS = 4_000


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """A row for each model of noise and number of rounds, and for each model and precision."""
    for name, model in MODELS.items():
        for rounds in ROUNDS:
            logs = model(np.random.default_rng([seed, rounds]), (_RUNS, 2, rounds))
            low, high = typical_interval(logs[:, 1] - logs[:, 0], CONFIDENCE)
            yield covered(f"typical ratio, {name}, {rounds} rounds", (low <= 0) & (high >= 0))
    for name, model in MODELS.items():
        for precision in PRECISIONS:
            logs = model(np.random.default_rng([seed, MOST_ROUNDS]), (_SEQUENTIAL_RUNS, 2, MOST_ROUNDS))
            low, high = until_precise(logs[:, 1] - logs[:, 0], precision)
            yield covered(f"typical ratio, {name}, --until-precision {precision:.0%}", (low <= 0) & (high >= 0))


def until_precise(logs: Floats, precision: float) -> tuple[Floats, Floats]:
    """Both ends of the interval where each run (a row) ends: narrow, or out of time."""
    low, high = np.full(len(logs), np.nan), np.full(len(logs), np.nan)
    going = np.ones(len(logs), np.bool_)
    for rounds in range(FEWEST_ROUNDS, logs.shape[1] + 1):
        so_far = logs[going, :rounds]
        ends = typical_interval(so_far, SEQUENTIAL_CONFIDENCE)
        done = narrow_enough(typical(so_far), *ends, precision) | (rounds == logs.shape[1])
        places = np.flatnonzero(going)[done]
        low[places], high[places] = ends[0][done], ends[1][done]
        going[places] = False
    return low, high
