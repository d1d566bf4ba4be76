"""The measured process: one strategy does one workload once, and nothing else happens here.

Started as ``python -m clientlab.measuring.trial_process FD``. It reads one line of JSON, the trial's
order, from standard input and writes its marks, a line of JSON each, to the descriptor FD:

    ready    warmed up; waits for a line before it begins, so that all else can be read off first
    done     wall seconds, CPU seconds; waits for a line before it ends
    failed   the reason, where the strategy itself failed; no other mark follows

It imports no more of the lab than the recorder, and no library but the strategy's own.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

from clientlab import strategies
from clientlab.executors.shape import Executor, Numbers
from clientlab.measuring import usage
from clientlab.measuring.connections import Address
from clientlab.measuring.recorder import TrialBench
from clientlab.measuring.recording import make_ready
from clientlab.strategies import Strategy, user_file
from clientlab.workload import Workload


@dataclass
class Marks:
    """The line to the process that started this one."""

    descriptor: int

    def send(self, mark: str, **figures: Any) -> None:
        os.write(self.descriptor, json.dumps({"mark": mark, **figures}).encode() + b"\n")

    def send_and_wait(self, mark: str, **figures: Any) -> None:
        """Send a mark and wait for the answer; ends the process where there is nobody to answer."""
        self.send(mark, **figures)
        if not sys.stdin.readline():
            raise SystemExit(1)


def main(argv: list[str]) -> None:
    """Run the trial that standard input orders."""
    signal.signal(signal.SIGTERM, _end_all(os.getpid()))
    usage.raise_descriptor_limit()
    usage.keep_status_open()
    marks = Marks(int(argv[1]))
    bench = None
    try:
        bench = bench_of(json.loads(sys.stdin.readline()))
        _trial(bench, marks)
    except Exception as error:  # noqa: BLE001 - the reason is the trial's result; the rest goes to its log
        traceback.print_exc()
        marks.send("failed", reason=_reason(error, bench))


def order_of(bench: TrialBench) -> dict[str, Any]:
    """A bench as plain values for JSON; `bench_of` reads it back."""
    return {
        "strategy": {**vars(bench.strategy), "settings": dict(bench.strategy.settings)},
        "workload": vars(bench.workload),
        "base_url": bench.base_url,
        "folder": bench.folder,
        "address": vars(bench.address),
        "ca_file": bench.ca_file,
    }


def bench_of(order: dict[str, Any]) -> TrialBench:
    """The bench of an order."""
    address = order["address"]
    return TrialBench(
        Strategy(**order["strategy"]),
        Workload(**order["workload"]),
        order["base_url"],
        order["folder"],
        Address(address["port"], tuple(address["refusing"])),
        order["ca_file"],
    )


def _end_all(trial: int) -> Callable[[int, FrameType | None], None]:
    """What SIGTERM does, which the kernel sends when the lab is killed: all processes of the trial end.

    A pool's process inherits this, and ends alone.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        if os.getpid() == trial:
            os.killpg(0, signal.SIGKILL)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    return end


def _trial(bench: TrialBench, marks: Marks) -> None:
    run = _warm if bench.workload.connections == "warm" else _cold
    run(bench, executors_of(bench), marks)


def executors_of(bench: TrialBench) -> Callable[[TrialBench], Executor]:
    """What makes the executors of a strategy, its libraries loaded.

    That is off the clock, as it is in a program that does so at its top: forked children share it.
    """
    row = strategies.executor_row(bench.strategy.executor)
    executor_class = strategies.load(row.place)
    if hasattr(executor_class, "prepare"):
        executor_class.prepare()
    strategies.load(strategies.client_row(bench.strategy.client).place)

    def executor_on(bench: TrialBench) -> Executor:
        made: Executor = executor_class(bench, **strategies.chosen(bench.strategy, row.place))
        return made

    return executor_on


def _cold(bench: TrialBench, executor_on: Callable[[TrialBench], Executor], marks: Marks) -> None:
    """Pools, loops, sessions and connections are made and closed inside the clock; the lab's log is not.

    The warm-up before it has its own, so that code is loaded and specialised, and nothing else is warm.
    """
    if bench.workload.warmup:
        _warm_aside(bench, executor_on)
    make_ready(bench)
    executor = executor_on(bench)
    marks.send_and_wait("ready")
    cpu, began = usage.cpu_seconds(), perf_counter()
    executor.open()
    executor.run(_numbers(bench.workload, began))
    executor.close()
    _done(marks, cpu, began)


def _warm_aside(bench: TrialBench, executor_on: Callable[[TrialBench], Executor]) -> None:
    """Nothing of it is kept: what the measured part needs of memory is counted from here."""
    aside = executor_on(replace(bench, folder=str(Path(bench.folder) / "warm-up")))
    aside.open()
    aside.run(Numbers(bench.workload.warmup))
    aside.close()
    del aside
    gc.collect()


def _warm(bench: TrialBench, executor_on: Callable[[TrialBench], Executor], marks: Marks) -> None:
    """Everything was made, and the connections opened, by the warm-up."""
    executor = executor_on(bench)
    executor.open()
    executor.run(Numbers(bench.warm_up, first=-bench.warm_up))
    marks.send_and_wait("ready")
    cpu, began = usage.cpu_seconds(), perf_counter()
    executor.run(_numbers(bench.workload, began))
    _done(marks, cpu, began)
    executor.close()


def _done(marks: Marks, cpu: float, began: float) -> None:
    wall = perf_counter() - began
    spent = usage.cpu_seconds() - cpu
    marks.send_and_wait("done", began=began, wall_seconds=wall, cpu_seconds=spent, peak_rss_bytes=usage.peak_rss())


def _numbers(workload: Workload, began: float) -> Numbers:
    if workload.requests is not None:
        return Numbers(workload.requests)
    return Numbers(None, began + (workload.duration or 0.0))


def _reason(error: Exception, bench: TrialBench | None) -> str:
    """The error and its place: in a user's file where it came out of one, else the innermost."""
    for place in (bench.strategy.client, bench.strategy.executor) if bench else ():
        path = user_file.file_of(place)
        if path is not None and (line := user_file.line_of(error, path)):
            return f"{type(error).__name__}: {error} ({path}:{line})"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"


if __name__ == "__main__":
    main(sys.argv)
