"""Divided trials: the result of 1, 2 and 4 shards beside the pooled samples of all requests, and the start spread.

The samples are those that ``--keep-samples`` keeps. The server counts the requests as well.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.figures import BenchmarkRow
from clientlab.analysis.latencies import QUANTILES, rank_of
from clientlab.judging.cautions.load import spread_of
from clientlab.results import kept_samples
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.running.trial_runner import TrialRunner
from clientlab.testbeds.local import LocalTestbed
from clientlab.testbeds.server_process import workers_for
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload

_SHARDS = (1, 2, 4)
_STRATEGY, _IN_FLIGHT = "aiohttp@workers", 32
_LOADS: dict[str, dict[str, Any]] = {
    "closed, 8,001 requests": {"requests": 8001, "delay": Delay.parse("exponential:5ms")},
    "open, 1,000/s for 4 s": {"requests": None, "rate": 1000.0, "duration": 4.0, "arrivals": "poisson"},
}
_RESOLUTION = 1e-12
"""Shards on one machine share the sample log: their percentiles are those of all samples."""
_SPREAD = 0.05


def rows(rounds: int) -> Iterator[BenchmarkRow]:
    """For each load and number of shards: requests counted differently, the error of p50 and p99, the spread."""
    with (
        tempfile.TemporaryDirectory() as name,
        LocalTestbed(["aiohttp"], ["direct"], Path(name) / "logs", workers_for(_IN_FLIGHT)) as testbed,
    ):
        runner = TrialRunner(testbed, keep_samples=True)
        for load, fields in _LOADS.items():
            for shards in _SHARDS:
                workload = Workload(**fields, concurrency=_IN_FLIGHT, shards=shards)
                trials = [
                    _trial(runner, workload, Path(name) / f"{list(_LOADS).index(load)}-{shards}-{number}")
                    for number in range(rounds)
                ]
                yield from _of(f"{load}, {shards} shards", trials)


def _trial(runner: TrialRunner, workload: Workload, folder: Path) -> tuple[Trial, npt.NDArray[np.float64]]:
    """A trial, and the seconds of all its requests; of an open load, from the real start."""
    planned = PlannedTrial(
        arm=_STRATEGY, strategy=_STRATEGY, upstream="aiohttp", route="direct", workload="w", round=1, order=0,
        concurrency=_IN_FLIGHT,
    )  # fmt: skip
    folder.mkdir()
    trial = runner(planned, workload, folder, lambda _: None)
    if trial.status != "done":
        raise SystemExit(f"shards: {trial.reason}")
    files = [np.load(path) for path in (folder / kept_samples.FOLDER).iterdir()]
    if len(np.unique(np.concatenate([one["number"] for one in files]))) != trial.requests:
        raise SystemExit("shards: a request was sent twice")
    return trial, np.sort(np.concatenate([one["seconds"] for one in files]))


def _of(about: str, found: list[tuple[Trial, npt.NDArray[np.float64]]]) -> Iterator[BenchmarkRow]:
    wrong = [
        abs(len(pooled) - trial.requests) + abs((trial.upstream_use.requests or 0) - trial.requests)
        for trial, pooled in found
        if trial.upstream_use is not None
    ]
    yield BenchmarkRow(
        f"{about}: requests that samples, result and server count differently", max(wrong, default=0), 0,
        max(wrong, default=0), f"of {len(wrong)} trials", "0", met=len(wrong) == len(found) and not any(wrong), unit="",
    )  # fmt: skip
    for name in ("p50", "p99"):
        errors = [abs(_quantile(trial, name) / _pooled(pooled, name) - 1) for trial, pooled in found]
        yield BenchmarkRow(
            f"{about}: error of {name}", 100 * median(errors), 100 * min(errors), 100 * max(errors),
            f"range of {len(errors)}", f"<= {100 * _RESOLUTION:g}", max(errors) <= _RESOLUTION, "%",
        )  # fmt: skip
    spreads = [spread_of(trial) for trial, _ in found]
    yield BenchmarkRow(
        f"{about}: start spread", 1e3 * median(spreads), 1e3 * min(spreads), 1e3 * max(spreads),
        f"range of {len(spreads)}", f"<= {1e3 * _SPREAD:g}", max(spreads) <= _SPREAD, "ms",
    )  # fmt: skip


def _quantile(trial: Trial, name: str) -> float:
    of = trial.latency_seconds if trial.open_load is None else trial.open_load.sent_seconds
    return float(getattr(of, name))


def _pooled(seconds: npt.NDArray[np.float64], name: str) -> float:
    """The nearest rank among all requests."""
    return float(seconds[rank_of(QUANTILES[name], len(seconds)) - 1])
