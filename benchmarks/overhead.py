"""What the lab adds: a strategy's wall time in the lab over that of the same loop
without the lab.

Each round is a fresh process, ``python -m benchmarks.overhead STRATEGY URL SECONDS
FIRST [CA]``, in which the lab and the bare loop take turns. In one process both have
the same memory layout; the difference between the layouts of two processes would hide
the overhead. Loops with one request in flight take turns after `BLOCK` requests, others
after all of them, because each turn makes new workers. The result is the median of the
turns' ratios: what slows the machine down slows both turns, or is left out. As in a
trial, the lab's time includes making and closing executor and client, and recording
every request.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks import bare_loops
from benchmarks.bare_loops import Run
from benchmarks.figures import BenchmarkRow, ratio
from clientlab import strategies
from clientlab.executors.executor_interface import Executor, RequestNumbers
from clientlab.observing import samples as log_reader
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.servers import choose_workers
from clientlab.trial.context import PeerAddress, TrialContext
from clientlab.trial.process import load_libraries, make_executor
from clientlab.trial.recording import preallocate
from clientlab.workload.workload import make_workload

REQUESTS, WARM_UP, BLOCK = 3000, 10, 100
LIMIT = 1.03
SECONDS_IN_ALL = 660.0
"""Divided among all clients: slow ones get fewer rounds, but at least
`FEWEST_ROUNDS`.
"""
FEWEST_ROUNDS, MOST_TIMES = 3, 3
"""While the interval includes the limit, a client gets up to `MOST_TIMES` its rounds
and its time.
"""
SECONDS_PER_ROUND = 2.0


def rows(rounds: int, clients: Sequence[str]) -> Iterator[BenchmarkRow]:
    """Yield a row for each client.

    The lab is first in every other round. Raise SystemExit if a round fails.
    """
    measured = bare_loops.strategies()
    seconds = SECONDS_IN_ALL / len(measured)
    with (
        tempfile.TemporaryDirectory() as logs,
        LocalTestbed(
            ["aiohttp"],
            ["direct", "proxy-tls"],
            Path(logs),
            choose_workers(bare_loops.CONCURRENCY),
        ) as testbed,
    ):
        for client in clients:
            route = "proxy-tls" if strategies.CLIENTS[client].http == "2" else "direct"
            address = testbed.address("aiohttp", route)
            site = [f"{address.url}/", *([address.ca_file] if address.ca_file else [])]
            ratios = _measure(measured[client], site, rounds, seconds)
            other = "bare loop" if client in bare_loops.OPENERS else "its client alone"
            yield ratio(
                f"lab over {other}, {measured[client]}, N={REQUESTS:,}", ratios, LIMIT
            )


def _measure(
    strategy: str, site: list[str], rounds: int, seconds: float
) -> list[float]:
    """Return a ratio per round: as many as requested or as fit into the time, and more
    while the limit is in doubt.
    """
    ratios: list[float] = []
    began, times = time.monotonic(), 1
    while len(ratios) < FEWEST_ROUNDS or (
        len(ratios) < times * rounds and time.monotonic() < began + times * seconds
    ):
        first = "bare" if len(ratios) % 2 else "lab"
        command = [
            sys.executable,
            "-m",
            "benchmarks.overhead",
            strategy,
            site[0],
            str(SECONDS_PER_ROUND),
            first,
        ]
        ended = subprocess.run(
            [*command, *site[1:]], capture_output=True, text=True, check=False
        )
        if ended.returncode:
            raise SystemExit(f"overhead: {strategy}: {ended.stderr}")
        ratios.append(float(ended.stdout))
        row = ratio(strategy, ratios)
        times = MOST_TIMES if row.low <= LIMIT <= row.high else 1
    return ratios


def compare(
    strategy: str, url: str, seconds: float, *, lab_first: bool, ca_file: str | None
) -> float:
    """Return the lab's seconds over those of the bare loop.

    Both send all requests at least once, until time is up.
    """
    address, spec = PeerAddress(url, ca_file=ca_file), strategies.find(strategy)

    def context(count: int, folder: str) -> TrialContext:
        return TrialContext(spec, make_workload(requests=count), address, folder)

    def measure(count: int) -> tuple[list[list[float]], list[float]]:
        with tempfile.TemporaryDirectory() as folder:
            preallocate(context(count, folder))
            executor = make_executor(context(count, folder))
            ways = [_lab_loop(executor), bare_loops.bare_loop(strategy, url, ca_file)]
            took = _take_turns(
                ways,
                [0, 1] if lab_first else [1, 0],
                count,
                BLOCK if spec.concurrency == 1 else count,
            )
            if errors := log_reader.read_measured(Path(folder)).errors:
                raise SystemExit(f"requests failed: {errors}")
        return took

    load_libraries(context(REQUESTS, ""))
    measure(WARM_UP)
    until = perf_counter() + seconds
    trials = [measure(REQUESTS)]
    while perf_counter() < until:
        trials.append(measure(REQUESTS))
    turns = [turn for its_turns, _ in trials for turn in its_turns]
    bare = median(bare for _, bare in turns) * len(trials[0][0])
    lab_ends, bare_ends = (median(ends[way] for _, ends in trials) for way in (0, 1))
    return (lab_ends + median(lab / bare for lab, bare in turns) * bare) / (
        bare_ends + bare
    )


@contextmanager
def _lab_loop(executor: Executor) -> Iterator[Run]:
    executor.open()
    sent = 0

    def run(count: int) -> None:
        nonlocal sent
        executor.run(RequestNumbers(count, first=sent))
        sent += count

    yield run
    executor.close()


def _take_turns(
    ways: Sequence[AbstractContextManager[Run]],
    order: list[int],
    count: int,
    block: int,
) -> tuple[list[list[float]], list[float]]:
    """Send `count` requests each way, in turns of `block`.

    The order is reversed after each turn.

    Return the seconds of both ways (the lab, the bare loop) for each turn, and for
    making and closing the client.
    """
    ends, turns, runs = [0.0, 0.0], [], {}
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
        turns.append(took)
        order.reverse()
    for way in order:
        began = perf_counter()
        ways[way].__exit__(None, None, None)
        ends[way] += perf_counter() - began
    return turns, ends


if __name__ == "__main__":
    name, its_url, most, first, *ca = sys.argv[1:]
    print(
        compare(
            name,
            its_url,
            float(most),
            lab_first=first == "lab",
            ca_file=ca[0] if ca else None,
        )
    )
