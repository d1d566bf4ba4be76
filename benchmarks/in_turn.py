"""The lab and a bare loop in turn, in one process: ``python -m benchmarks.in_turn STRATEGY URL N SECONDS FIRST [CA]``.

Prints the lab's wall seconds for N requests over those of the bare loop, both sent as often as fits into SECONDS, once
at least; FIRST, ``lab`` or ``bare``, begins. One by one they take turns after every `BLOCK` requests. With many in
flight it is after all N: a turn makes its workers anew, and a trial makes them once. The median of both turns' ratios
is what counts: what slows the machine down slows neighbours alike, or is left out. In one process both have the same
layout of memory, which differs from process to process by more than what is looked for. What is timed of the lab is
what a trial times: executor and client made and closed, every request recorded.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.bare import Run
from benchmarks.bare_loops import bare_loop
from benchmarks.trials import Site, context_on, expect_no_errors
from clientlab import strategies
from clientlab.executors.executor_interface import Executor, RequestNumbers
from clientlab.measuring.recording import preallocate
from clientlab.measuring.trial_process import load_libraries, make_executor
from clientlab.samples import log_reader
from clientlab.workload.workload import Workload

WARM_UP, BLOCK = 10, 100


@dataclass(frozen=True)
class Trials:
    """One of the lab and one bare. Seconds of both, the lab's first: of each turn, and of making and closing."""

    turns: list[tuple[float, float]]
    ends: tuple[float, float]


def main(strategy: str, site: Site, count: int, seconds: float, *, lab_first: bool) -> float:
    """The lab's seconds over those of the bare loop."""
    load_libraries(context_on(site, strategy, Workload(), ""))
    block = BLOCK if strategies.find(strategy).concurrency == 1 else count
    order = [0, 1] if lab_first else [1, 0]

    def once(count: int) -> Trials:
        with tempfile.TemporaryDirectory() as folder:
            context = context_on(site, strategy, Workload(requests=count), folder)
            preallocate(context)
            executor = make_executor(context)
            took = _in_turn([_run_of(executor), bare_loop(strategy, site)], order, count, block)
            expect_no_errors(log_reader.read(Path(folder)))
        return took

    once(WARM_UP)
    until = perf_counter() + seconds
    trials = [once(count)]
    while perf_counter() < until:
        trials.append(once(count))
    return _ratio(trials)


def _ratio(trials: list[Trials]) -> float:
    """Of the typical turns, and of what is made and closed around them."""
    turns = [turn for trial in trials for turn in trial.turns]
    lab_over_bare = median(lab / bare for lab, bare in turns)
    bare = median(bare for _, bare in turns) * len(trials[0].turns)
    lab_ends, bare_ends = (median(trial.ends[way] for trial in trials) for way in (0, 1))
    return (lab_ends + lab_over_bare * bare) / (bare_ends + bare)


@contextlib.contextmanager
def _run_of(executor: Executor) -> Iterator[Run]:
    executor.open()
    sent = 0

    def run(count: int) -> None:
        nonlocal sent
        executor.run(RequestNumbers(count, first=sent))
        sent += count

    yield run
    executor.close()


def _in_turn(ways: list[contextlib.AbstractContextManager[Run]], order: list[int], count: int, block: int) -> Trials:
    """So many requests each way; `order` is turned over after each block."""
    ends, turns = [0.0, 0.0], []
    runs: dict[int, Run] = {}
    gc.collect()
    for way in order:
        began = perf_counter()
        runs[way] = ways[way].__enter__()
        ends[way] += perf_counter() - began
    for first in range(0, count, block):
        took = [0.0, 0.0]
        for way in order:
            began = perf_counter()
            runs[way](min(block, count - first))
            took[way] = perf_counter() - began
        turns.append((took[0], took[1]))
        order.reverse()
    for way in order:
        began = perf_counter()
        ways[way].__exit__(None, None, None)
        ends[way] += perf_counter() - began
    return Trials(turns, (ends[0], ends[1]))


if __name__ == "__main__":
    name, url, n, most, first, *ca = sys.argv[1:]
    print(main(name, Site(url, *ca), int(n), float(most), lab_first=first == "lab"), flush=True)
