"""The lab and a bare loop read streams in turn: ``python -m benchmarks.streams_in_turn CLIENT URL FIRST``.

Prints the CPU time of the lab over that of the bare loop, the median of `TURNS` pairs. FIRST, ``lab`` or ``bare``,
begins.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import process_time

from benchmarks.bare import Run
from benchmarks.bare_streams import BARE, EVENTS
from benchmarks.trials import Site, context_on, expect_no_errors
from clientlab.executors.executor_interface import Executor, RequestNumbers
from clientlab.measuring.recording import preallocate
from clientlab.measuring.trial_process import load_libraries, make_executor
from clientlab.samples import log_reader
from clientlab.workload.delays import Delay
from clientlab.workload.making import requests_of
from clientlab.workload.workload import Workload

STREAMS, TURNS = 3, 9
"""Streams of a turn, and turns."""


def main(client: str, site: Site, *, lab_first: bool) -> float:
    """The lab's CPU seconds over those of the bare loop."""
    workload = Workload(stream="sse", every=Delay("", (0.001,)), events=EVENTS, requests=STREAMS * (TURNS + 1))
    with tempfile.TemporaryDirectory() as folder:
        context = context_on(site, client, workload, folder)
        load_libraries(context)
        preallocate(context)
        request = requests_of(workload, site.url)(0)
        with _in_lab(make_executor(context)) as lab, BARE[client](request) as bare:
            order = [lab, bare] if lab_first else [bare, lab]
            for run in order:
                run(STREAMS)
            ratios = []
            for _ in range(TURNS):
                took = {run: _cpu_seconds(run) for run in order}
                ratios.append(took[lab] / took[bare])
                order.reverse()
        expect_no_errors(log_reader.read(Path(folder)))
    return median(ratios)


def _cpu_seconds(run: Run) -> float:
    began = process_time()
    run(STREAMS)
    return process_time() - began


@contextlib.contextmanager
def _in_lab(executor: Executor) -> Iterator[Run]:
    executor.open()
    sent = 0

    def run(count: int) -> None:
        nonlocal sent
        executor.run(RequestNumbers(count, first=sent))
        sent += count

    yield run
    executor.close()


if __name__ == "__main__":
    name, url, first = sys.argv[1:]
    json.dump(main(name, Site(url), lab_first=first == "lab"), sys.stdout)
