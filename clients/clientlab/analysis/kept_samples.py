"""Samples that are kept: one compressed NumPy archive of columns per trial.

pandas.DataFrame(dict(numpy.load("results/RUN/samples/trial-0000.npz")))
polars.DataFrame(dict(numpy.load("results/RUN/samples/trial-0000.npz")))
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from clientlab.observing.samples import Samples
from clientlab.results.trial import Trial
from clientlab.workload.workload import Workload, delay_of

FOLDER = "samples"


def are_kept(folder: Path, *, wanted: bool) -> bool:
    """Return whether the samples of the run in that folder are kept.

    They are if that is wanted now, or was when the run began.
    """
    kept = folder / FOLDER
    if wanted:
        kept.mkdir(exist_ok=True)
    return kept.is_dir()


def write(
    folder: Path, trial: Trial, workload: Workload, samples: Samples, began: float
) -> Path:
    """Write a trial's samples to an archive in the run's folder, by their start.

    `began`: when the trial began, in seconds of the monotonic clock.
    """
    planned = trial.planned
    records = samples.records
    count = len(records)
    # Columns of equal values take no memory, and next to no space once compressed.
    unknown = np.broadcast_to(np.float32(np.nan), count)
    delay = delay_of(workload)
    asked = np.full(count, np.nan) if delay is None else samples.delays(delay)
    unavoidable = asked
    if planned.link is not None:
        unavoidable = np.nan_to_num(asked) + planned.link.rtt
    kinds = np.array([samples.kinds.get(code, "") for code in range(256)])
    elapsed = unknown
    if workload.reading.elapsed:
        elapsed = records["elapsed"]
    first_byte = unknown
    if workload.reading.first_byte:
        first_byte = records["seconds"] - records["elapsed"]
    columns = {
        # `order` in the run document.
        "trial": np.broadcast_to(np.int32(planned.order), count),
        "arm": np.broadcast_to(np.array(planned.arm), count),
        "round": np.broadcast_to(np.int32(planned.round), count),  # from 1
        # Of the request; requests of the same number are equal in all arms of a round.
        "number": samples.numbers,
        "start_seconds": records["start"] - began,
        "seconds": records["seconds"],
        "status": records["status"],  # of the response; 0 without one
        "error": kinds[records["error"]],  # empty if the request succeeded
        "bytes": records["bytes"],  # of the response's body
        "delay_seconds": asked,  # of the upstream; NaN without a delay
        # NaN without a delay or a link.
        "overhead_seconds": records["seconds"] - unavoidable,
        "elapsed_seconds": elapsed,
        "first_byte_seconds": first_byte,
    }
    archive = folder / FOLDER / f"trial-{planned.order:04d}.npz"
    archive.parent.mkdir(exist_ok=True)
    np.savez_compressed(archive, **columns)
    return archive
