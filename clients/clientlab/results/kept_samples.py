"""Samples that are kept: one compressed NumPy archive per trial, with columns of equal
length for data frames.

pandas.DataFrame(dict(numpy.load("results/RUN/samples/trial-0000.npz")))
polars.DataFrame(dict(numpy.load("results/RUN/samples/trial-0000.npz")))
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from clientlab.trial.result import Trial
from clientlab.trial.samples import Samples
from clientlab.workload.workload import Workload, delay_of

FOLDER = "samples"


def are_kept(folder: Path, *, wanted: bool) -> bool:
    """Return whether the samples of the run in that folder are kept: if that is wanted
    now, or was when it began.
    """
    kept = folder / FOLDER
    if wanted:
        kept.mkdir(exist_ok=True)
    return kept.is_dir()


def write(
    folder: Path, trial: Trial, workload: Workload, found: Samples, began: float
) -> Path:
    """Write a trial's samples to an archive in the run's folder, in the order of their
    start.

    `began`: when the trial began, in seconds of the monotonic clock.
    """
    records, count = found.records, len(found.records)
    kinds = np.array(["", *found.kinds.values()])
    places = np.zeros(
        256, np.uint8
    )  # from the code in a record to the index of its kind
    places[list(found.kinds)] = np.arange(1, len(kinds))
    delay = delay_of(workload)
    asked = np.full(count, np.nan) if delay is None else found.delays(delay)
    unavoidable = asked
    if (link := trial.planned.link) is not None:
        unavoidable = np.nan_to_num(asked) + link.rtt
    none = np.broadcast_to(np.float32(np.nan), count)
    columns = {
        # A column of equal values takes no memory, and next to no space once it is
        # compressed.
        "trial": np.broadcast_to(
            np.int32(trial.planned.order), count
        ),  # `order` in the run document
        "arm": np.broadcast_to(np.array(trial.planned.arm), count),
        "round": np.broadcast_to(np.int32(trial.planned.round), count),  # from 1
        # Of the request; requests of the same number are equal in all arms of a round.
        "number": found.numbers,
        "start_seconds": records["start"] - began,
        "seconds": records["seconds"],
        "status": records["status"],  # of the response; 0 without one
        "error": kinds[places[records["error"]]],  # empty if the request succeeded
        "bytes": records["bytes"],  # of the response's body
        "delay_seconds": asked,  # of the upstream; NaN without a delay
        "overhead_seconds": records["seconds"]
        - unavoidable,  # NaN without a delay or a link
        "elapsed_seconds": records["elapsed"] if workload.elapsed else none,
        "first_byte_seconds": records["seconds"] - records["elapsed"]
        if workload.first_byte
        else none,
    }
    archive = folder / FOLDER / f"trial-{trial.planned.order:04d}.npz"
    archive.parent.mkdir(exist_ok=True)
    np.savez_compressed(archive, **columns)
    return archive
