"""How often the interval of a sweep's knee holds the knee, and how often it rules out a point at least."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.figures import BenchmarkRow
from benchmarks.truth.noise import MODELS, Floats
from benchmarks.truth.shares import covered, without_target
from clientlab.analysis.sweeps import TurningPoint, turning_point

CURVES = {"sharp": (8.0, 4.0, 2.0, 1.0, 1.0, 1.0), "round": (1.5, 1.2, 1.08, 1.03, 1.0, 1.02)}
"""Typical figures of six points; the knee is the fourth of both."""
KNEE = 3
_RUNS = 500


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """Two rows for each curve, model of noise and number of rounds."""
    for shape, curve in CURVES.items():
        for name, model in MODELS.items():
            for rounds in (5, 10):
                draw = np.random.default_rng([seed, rounds])
                logs = model(draw, (_RUNS, len(curve), rounds)) + np.log(curve)[:, None]
                found = [found_in(run) for run in logs]
                held = np.array([one is not None and one[0] <= KNEE <= one[1] for one in found])
                narrowed = np.array([one is not None and one[1] - one[0] + 1 < len(curve) for one in found])
                yield covered(f"knee of a {shape} curve, {name}, {rounds} rounds", held)
                yield without_target("the same rules out a point at least", narrowed)


def found_in(logs: Floats) -> tuple[int, int] | None:
    """The knee's interval in one run; shape (points, rounds)."""
    found: TurningPoint = turning_point([dict(enumerate(row)) for row in np.exp(logs).tolist()])
    return found.between
