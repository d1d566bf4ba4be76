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

COLUMNS = {
    "trial": ("i", "its number in the run, `order` of the run document"),
    "arm": ("U", "name of the arm"),
    "round": ("i", "from 1"),
    "number": ("i", "of the request; equal numbers of two trials ask for the same"),
    "start_seconds": ("f", "since the trial began"),
    "seconds": ("f", "from just before it was sent to its whole body read"),
    "status": ("u", "of the answer; 0 without one"),
    "error": ("U", "its kind; empty where it succeeded"),
    "bytes": ("u", "of the answer's body"),
    "delay_seconds": ("f", "asked of the upstream; NaN where none was"),
    "overhead_seconds": ("f", "seconds less delay_seconds and one round trip of the link; NaN without both"),
    "elapsed_seconds": ("f", "the library's own measure; NaN where it was not asked for"),
}
"""Column → the kind of NumPy type, and what it holds."""


def write(folder: Path, trial: Trial, workload: Workload, found: Samples, began: float) -> Path:
    """Write the samples of a trial below the run's folder, in the order of their start, whole or not at all.

    `began`: of the trial, monotonic seconds.
    """
    archive = folder / FOLDER / f"trial-{trial.order:04d}.npz"
    archive.parent.mkdir(exist_ok=True)
    beside = archive.with_suffix(".part")
    try:
        with beside.open("wb") as file:
            np.savez_compressed(file, **_columns(trial, workload, found, began))  # type: ignore[arg-type]
        beside.replace(archive)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    return archive


def _columns(trial: Trial, workload: Workload, found: Samples, began: float) -> dict[str, npt.NDArray[np.generic]]:
    records, count = found.records, len(found.records)
    kinds = np.array(["", *found.kinds.values()])
    places = np.zeros(256, np.uint8)  # a record's code → place among the kinds
    places[list(found.kinds)] = np.arange(1, len(kinds))
    delays, unavoidable = (_of_each(one, found) for one in (delay_of(workload), unavoidable_of(workload, trial.link)))
    return {
        # What is the same for all takes no memory: written in blocks, it is compressed to next to nothing.
        "trial": np.broadcast_to(np.int32(trial.order), count),
        "arm": np.broadcast_to(np.array(trial.arm), count),
        "round": np.broadcast_to(np.int32(trial.round), count),
        "number": found.numbers,
        "start_seconds": records["start"] - began,
        "seconds": records["seconds"],
        "status": records["status"],
        "error": kinds[places[records["error"]]],
        "bytes": records["bytes"],
        "delay_seconds": delays,
        "overhead_seconds": records["seconds"] - unavoidable,
        "elapsed_seconds": records["elapsed"] if workload.elapsed else np.broadcast_to(np.float32(np.nan), count),
    }


def _of_each(seconds_of: Callable[[int], float] | None, found: Samples) -> npt.NDArray[np.float64]:
    """The seconds of each request of the records; NaN where they are unknown."""
    if seconds_of is None:
        return np.full(len(found.records), np.nan)
    return np.fromiter(map(seconds_of, found.numbers.tolist()), np.float64, len(found.records))
