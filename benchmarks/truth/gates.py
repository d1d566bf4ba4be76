"""How often `compare --fail-on` fails at exactly its threshold if runs differ as a whole, and what a gate finds.

The levels of runs vary beside their rounds: a run is slower or faster as a whole. Older runs of the same surroundings
show by how much.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.figures import BenchmarkRow
from benchmarks.truth.comparisons import STRATEGIES, drawn_run
from benchmarks.truth.noise import SPREAD, Draw
from benchmarks.truth.shares import false, without_target
from clientlab.judging.comparison import compare
from clientlab.judging.levels import levels_of, widened
from clientlab.judging.run_thresholds import judge_run
from clientlab.judging.thresholds import change_threshold, judge_changes, limit
from clientlab.results.document import Run

LEVELS = (0.0, 0.03, 0.05)
STORED = (0, 3, 6, 12)
"""Runs of the same surroundings, the baseline included; 0: none is counted."""
_WALL = change_threshold("wall +0%")
_RUNS = 600
_FOUND_IN = 400
_P99_VARIES = 0.15


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """For each spread of levels and number of stored runs: builds that fail at the threshold. Then the power."""
    for level in LEVELS:
        for stored in STORED:
            draw = np.random.default_rng([seed, int(100 * level), stored])
            failed = np.array([_fails(draw, level, stored) for _ in range(_RUNS)])
            name = f"gate fails at the threshold, levels vary by {100 * level:g} %, {stored or 'no'} stored runs"
            yield false(name, failed) if stored or not level else without_target(name, failed)
    for rounds in (3, 5, 10):
        draw = np.random.default_rng([seed, rounds])
        found = np.array([_finds_doubling(draw, rounds) for _ in range(_FOUND_IN)])
        name = f"a doubled p99 that varies by {100 * _P99_VARIES:g} % is found, 8 arms, {rounds} rounds"
        yield without_target(name, found)


def _run(draw: Draw, level: float, rounds: int = 10) -> Run:
    """A run of one arm, whose level is drawn."""
    return drawn_run(np.exp(draw.normal(0, level) + draw.normal(0, SPREAD, (1, 1, rounds))), ("wall",))


def _fails(draw: Draw, level: float, stored: int) -> bool:
    base, after, *older = (_run(draw, level) for _ in range(2 + max(0, stored - 1)))
    levels = levels_of([base, *older], [_WALL.figure]) if stored else {}
    (judged,) = judge_changes(widened(compare(base, [after]), levels), [_WALL], strict=False)
    return judged.outcome == "failed"


def _finds_doubling(draw: Draw, rounds: int) -> bool:
    """Whether a limit on p99 is exceeded by an arm whose p99 is twice as long; the other arms are at the limit."""
    logs = draw.normal(0, _P99_VARIES / 5, (len(STRATEGIES), 1, rounds))  # a drawn p99 varies five times as much
    logs[0] += np.log(2) / 5
    run = drawn_run(np.exp(logs), ("p99",))
    outcomes = judge_run(run, [limit("p99 > 9ms")])
    return next(one.outcome for one in outcomes if one.arm == run.experiment.arms[0].name) == "failed"
