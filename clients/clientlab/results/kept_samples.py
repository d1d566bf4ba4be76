"""Samples that are kept: a compressed NumPy archive for each trial, with columns of equal length for data frames.

pandas.DataFrame(dict(numpy.load("results/RUN/samples/trial-0000.npz")))
polars.DataFrame(dict(numpy.load("results/RUN/samples/trial-0000.npz")))
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from clientlab.results.trial import Trial
from clientlab.samples.log_reader import Samples
from clientlab.workload.link import unavoidable_of
from clientlab.workload.workload import Workload, delay_of

FOLDER = "samples"


def write(folder: Path, trial: Trial, workload: Workload, found: Samples, began: float) -> Path:
    """Write the samples of a trial below the run's folder, in the order of their start.

    `began`: of the trial, monotonic seconds.
    """

    def seconds(of: Callable[[int], float] | None) -> npt.NDArray[np.float64]:
        return np.full(count, np.nan) if of is None else np.fromiter(map(of, found.numbers.tolist()), np.float64, count)

    records, count = found.records, len(found.records)
    kinds = np.array(["", *found.kinds.values()])
    places = np.zeros(256, np.uint8)  # a record's code → place among the kinds
    places[list(found.kinds)] = np.arange(1, len(kinds))
    columns = {
        # Equal values of all rows take no memory: written in blocks, they are compressed to next to nothing.
        "trial": np.broadcast_to(np.int32(trial.order), count),  # its number in the run, `order` of the run document
        "arm": np.broadcast_to(np.array(trial.arm), count),
        "round": np.broadcast_to(np.int32(trial.round), count),  # from 1
        "number": found.numbers,  # of the request; equal numbers of two trials ask for the same
        "start_seconds": records["start"] - began,
        "seconds": records["seconds"],
        "status": records["status"],  # of the answer; 0 without one
        "error": kinds[places[records["error"]]],  # its kind; empty if the request succeeded
        "bytes": records["bytes"],  # of the answer's body
        "delay_seconds": seconds(delay_of(workload)),  # asked of the upstream; NaN without one
        "overhead_seconds": records["seconds"] - seconds(unavoidable_of(workload, trial.link)),  # NaN: no delay or link
        "elapsed_seconds": records["elapsed"] if workload.elapsed else np.broadcast_to(np.float32(np.nan), count),
    }
    archive = folder / FOLDER / f"trial-{trial.order:04d}.npz"
    archive.parent.mkdir(exist_ok=True)
    np.savez_compressed(archive, **columns)
    return archive
