"""Samples that are kept: a compressed NumPy archive for each trial, with columns of equal length for data frames.

pandas.DataFrame(dict(numpy.load("results/RUN/samples/trial-0000.npz")))
polars.DataFrame(dict(numpy.load("results/RUN/samples/trial-0000.npz")))
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from clientlab.errors import LabError
from clientlab.results.trial import Trial
from clientlab.samples.event_log_reader import StreamEvents
from clientlab.samples.log_reader import Samples
from clientlab.workload.link import unavoidable_of
from clientlab.workload.workload import Workload, delay_of, fault_of

FOLDER = "samples"
FILE_NAME = re.compile(r"trial-\d{4,9}(-events)?\.npz")
_OF_EVENTS = "-events.npz"

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
    "fault": ("U", "that it asked the upstream for; empty without one"),
    "elapsed_seconds": ("f", "the library's own measure; NaN where it was not asked for"),
}
"""Column → the kind of NumPy type, and what it holds."""

EVENT_COLUMNS = {
    "trial": ("i", "its number in the run, `order` of the run document"),
    "arm": ("U", "name of the arm"),
    "round": ("i", "from 1"),
    "request": ("i", "number of the stream's request"),
    "number": ("i", "of the event by its mark, from 0; -1 without a mark"),
    "arrived_seconds": ("f", "when the client handed it over, since the trial began"),
    "written_seconds": ("f", "when the server wrote it, by the same clock; NaN without a mark"),
    "late_seconds": ("f", "by which the server wrote it later than planned; NaN without a mark"),
}
"""The same of events, which have a file beside that of their requests."""


def write(folder: Path, trial: Trial, workload: Workload, found: Samples, began: float) -> Path:
    """Write the samples of a trial below the run's folder, in the order of their start, whole or not at all.

    `began`: of the trial, monotonic seconds.
    """
    archive = folder / FOLDER / f"trial-{trial.order:04d}.npz"
    return _written(archive, _columns(trial, workload, found, began))


def write_events(folder: Path, trial: Trial, found: StreamEvents, began: float) -> Path:
    """Write the events of a trial beside its samples, stream by stream in the order of their arrival."""
    archive = folder / FOLDER / f"trial-{trial.order:04d}{_OF_EVENTS}"
    columns = _of_trial(trial, found.count) | {
        "request": np.repeat(found.requests, found.counts),
        "number": found.number,
        "arrived_seconds": found.arrived - began,
        "written_seconds": found.written - began,
        "late_seconds": found.late,
    }
    return _written(archive, columns)


def _written(archive: Path, columns: dict[str, npt.NDArray[np.generic]]) -> Path:
    archive.parent.mkdir(exist_ok=True)
    beside = archive.with_suffix(".part")
    try:
        with beside.open("wb") as file:
            np.savez_compressed(file, **columns)  # type: ignore[arg-type]
        beside.replace(archive)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    return archive


def check(file: BinaryIO, name: str, most_bytes: int) -> None:
    """Raises LabError for what is not such a file: other columns, types or lengths, damaged, or too large unpacked.

    Nothing of it is loaded: a header that lies about its array's size takes no memory.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > most_bytes:
                raise LabError(f"{name}: {size:,} bytes unpacked; no more than {most_bytes:,} are taken")
            wanted = EVENT_COLUMNS if name.endswith(_OF_EVENTS) else COLUMNS
            lengths = {_length(archive, column, kind, name) for column, (kind, _) in wanted.items()}
            if len(lengths) != 1 or archive.testzip() is not None:
                raise LabError(f"{name}: columns of unequal length, or damaged ones")
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        raise LabError(f"{name}: not samples of a trial ({' '.join(str(error).split())[:80]})") from error


def _length(archive: zipfile.ZipFile, column: str, kind: str, name: str) -> int:
    """The length of a column, by its header and its size both."""
    if f"{column}.npy" not in archive.namelist():
        raise LabError(f"{name}: column {column!r} is missing; it holds no samples of this version")
    with archive.open(f"{column}.npy") as member:
        if npy.read_magic(member) != (1, 0):
            raise LabError(f"{name}: column {column!r} is of another version of NumPy's format")
        shape, _, dtype = npy.read_array_header_1_0(member)
        inside = archive.getinfo(f"{column}.npy").file_size - member.tell()
    if dtype.kind != kind or len(shape) != 1 or shape[0] * dtype.itemsize != inside:
        raise LabError(f"{name}: column {column!r} has type {dtype}, shape {shape} and {inside} bytes; it was changed")
    return int(shape[0])


def _columns(trial: Trial, workload: Workload, found: Samples, began: float) -> dict[str, npt.NDArray[np.generic]]:
    records, count = found.records, len(found.records)
    kinds = np.array(["", *found.kinds.values()])
    places = np.zeros(256, np.uint8)  # a record's code → place among the kinds
    places[list(found.kinds)] = np.arange(1, len(kinds))
    delays, unavoidable = (_of_each(one, found) for one in (delay_of(workload), unavoidable_of(workload, trial.link)))
    return _of_trial(trial, count) | {
        "number": found.numbers,
        "start_seconds": records["start"] - began,
        "seconds": records["seconds"],
        "status": records["status"],
        "error": kinds[places[records["error"]]],
        "bytes": records["bytes"],
        "delay_seconds": delays,
        "overhead_seconds": records["seconds"] - unavoidable,
        "fault": _faults_of(workload, found),
        "elapsed_seconds": records["elapsed"] if workload.elapsed else np.broadcast_to(np.float32(np.nan), count),
    }


def _of_trial(trial: Trial, count: int) -> dict[str, npt.NDArray[np.generic]]:
    """The columns that are the same for all rows. They take no memory, and are compressed to next to nothing."""
    return {
        "trial": np.broadcast_to(np.int32(trial.order), count),
        "arm": np.broadcast_to(np.array(trial.arm), count),
        "round": np.broadcast_to(np.int32(trial.round), count),
    }


def _faults_of(workload: Workload, found: Samples) -> npt.NDArray[np.str_]:
    drawn = fault_of(workload)
    if drawn is None:
        return np.broadcast_to(np.array(""), len(found.records))
    faults = (drawn(number) for number in found.numbers.tolist())
    return np.array(["" if fault is None else fault.text for fault in faults], dtype=np.str_)


def _of_each(seconds_of: Callable[[int], float] | None, found: Samples) -> npt.NDArray[np.float64]:
    """The seconds of each request of the records; NaN where they are unknown."""
    if seconds_of is None:
        return np.full(len(found.records), np.nan)
    return np.fromiter(map(seconds_of, found.numbers.tolist()), np.float64, len(found.records))
