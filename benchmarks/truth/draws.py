"""How often intervals hold the typical p99, and the typical ratio of two arms, of fresh random draws.

Trials are simulated with the lab's own draws: requests arrive by a schedule, wait in the order of their arrival until
fewer than the most are in flight, and take their delay and the client's overhead. The truth is that of many trials of
other runs.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.figures import BenchmarkRow
from benchmarks.truth.noise import Floats
from benchmarks.truth.shares import covered
from clientlab.analysis.ratios import CONFIDENCE
from clientlab.analysis.typical import typical, typical_interval
from clientlab.workload.delays import Delay
from clientlab.workload.load import arrivals_of
from clientlab.workload.seeds import in_round
from clientlab.workload.workload import Workload, delay_of

ROUNDS = (5, 10)
IN_FLIGHT = 16
_OVERHEADS = (0.001, 0.003)
"""Seconds of each arm's own in a request. The second arm is slower."""
_NOISE = 0.002
"""Standard deviation of what the machine adds to a trial, as a share: next to nothing, so that the draw decides."""
_RUNS = 1_000
_TRUE_TRIALS = 4_000

LOADS = {
    "Poisson 200/s": Workload(rate=200.0, arrivals="poisson", duration=5.0, delay=Delay.parse("exponential:60ms")),
    "closed": Workload(requests=1000, delay=Delay.parse("lognormal:60ms,0.8")),
}


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """Two rows for each load and number of rounds: of the p99 of an arm, and of the ratio of both arms."""
    for index, (name, workload) in enumerate(LOADS.items()):
        # Runs have seeds of 31 bits here; those of the trials behind the truth are no such numbers.
        other = trials(workload, [(2**40 + seed, number) for number in range(_TRUE_TRIALS)], [seed, index])
        truth, true_ratio = typical(other[0]), typical(other[1] - other[0])
        for rounds in ROUNDS:
            runs = np.random.default_rng([seed, index, rounds]).integers(2**31, size=_RUNS)
            drawn = [(int(run), number) for run in runs for number in range(1, rounds + 1)]
            logs = trials(workload, drawn, [seed, index, rounds]).reshape(2, _RUNS, rounds)
            for figure, values, true in (("p99", logs[0], truth), ("ratio of p99", logs[1] - logs[0], true_ratio)):
                low, high = typical_interval(values, CONFIDENCE)
                yield covered(f"{figure} of fresh draws, {name}, {rounds} rounds", (low <= true) & (high >= true))


def trials(workload: Workload, drawn: Sequence[tuple[int, int]], seed: Sequence[int]) -> Floats:
    """Logarithms of p99, shaped (arms, trials). `drawn`: seed and round of each trial. `seed`: of the noise."""
    noise = np.random.default_rng(seed).normal(0, _NOISE, (len(_OVERHEADS), len(drawn)))
    times = [[p99(in_round(workload, *one), overhead) for one in drawn] for overhead in _OVERHEADS]
    return np.log(times) + noise


def p99(workload: Workload, overhead: float) -> float:
    """Seconds of a trial's 99th percentile, by nearest rank, from the planned start of each request."""
    schedule, delay = arrivals_of(workload), delay_of(workload)
    count = (workload.requests if schedule is None else schedule.count) or 0
    free = [0.0] * IN_FLIGHT
    latencies = []
    for number in range(count):
        slot_free = free[0]
        planned = slot_free if schedule is None else schedule.start_of(number)
        ended = max(slot_free, planned) + overhead + (delay(number) if delay else 0.0)
        heapq.heapreplace(free, ended)
        latencies.append(ended - planned)
    return sorted(latencies)[-(-99 * count // 100) - 1]
