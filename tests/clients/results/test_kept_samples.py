"""Samples that are kept: every request of a trial, readable in one line, and files that are not such samples."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from clientlab.errors import LabError
from clientlab.results.kept_samples import COLUMNS, check, write
from clientlab.samples.log_reader import RECORD, Samples
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload
from clients.documents import a_trial

MUCH = 1 << 20


def found() -> Samples:
    """Three requests: one succeeded, one was reset, one raised what has no kind of its own."""
    records = np.zeros(3, RECORD)
    records["start"], records["seconds"] = [100.5, 101.0, 103.0], [0.25, 0.5, 1.0]
    records["elapsed"] = [0.125, 0.25, 0.5]
    records["bytes"], records["status"], records["error"] = [150, 0, 0], [200, 0, 0], [0, 6, 64]
    return Samples(records, np.array([7, 5, 9]), {}, {}, {6: "reset", 64: "other:Odd"})


@pytest.fixture
def kept(tmp_path):
    """The file of the fourth trial."""
    return write(
        tmp_path,
        a_trial("urllib3", 2, order=3),
        Workload(requests=3, delay=Delay.parse("100ms"), elapsed=True),
        found(),
        100.0,
    )


EXPECTED = {
    "trial": [3, 3, 3], "arm": ["urllib3"] * 3, "round": [2, 2, 2], "number": [7, 5, 9],
    "start_seconds": [0.5, 1.0, 3.0], "seconds": [0.25, 0.5, 1.0], "status": [200, 0, 0],
    "error": ["", "reset", "other:Odd"], "bytes": [150, 0, 0], "delay_seconds": [0.1] * 3,
    "overhead_seconds": [0.15, 0.4, 0.9],
    "elapsed_seconds": [0.125, 0.25, 0.5],
}  # fmt: skip


def test_a_column_each_with_every_request_in_the_order_of_its_start(kept):
    """And the file is whole: nothing lies beside it."""
    with np.load(kept) as columns:
        told = {name: columns[name].tolist() for name in columns.files}
    assert told.keys() == COLUMNS.keys()
    for name, values in EXPECTED.items():
        assert told[name] == (pytest.approx(values) if name.endswith("seconds") else values), name
    assert [path.name for path in kept.parent.iterdir()] == ["trial-0003.npz"]


def test_a_disk_without_room_leaves_nothing_half_written(tmp_path, monkeypatch):
    """The run ends with the error, as with any other that it can't write."""

    def full(*_args, **_columns):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path, a_trial(), Workload(requests=3), found(), 100.0)
    assert list((tmp_path / "samples").iterdir()) == []


def changed(kept, **columns) -> bytes:
    """The file with other columns; None leaves one out."""
    with np.load(kept) as archive:
        whole = {name: archive[name] for name in archive.files} | columns
    file = io.BytesIO()
    np.savez(file, **{name: values for name, values in whole.items() if values is not None})
    return file.getvalue()


def lying(kept) -> bytes:
    """A header that claims a billion values."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**9,)})
    file = io.BytesIO()
    with zipfile.ZipFile(kept) as before, zipfile.ZipFile(file, "w") as after:
        for name in before.namelist():
            after.writestr(name, header.getvalue() if name == "seconds.npy" else before.read(name))
    return file.getvalue()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda _: b"", "not samples of a trial"),
        (lambda kept: kept.read_bytes()[:-50], "not samples of a trial"),
        (lambda kept: changed(kept, seconds=None), "column 'seconds' is missing"),
        (lambda kept: changed(kept, seconds=np.arange(3)), "column 'seconds' has type int64"),
        (lambda kept: changed(kept, seconds=np.ones(2)), "columns of unequal length"),
        (lambda kept: changed(kept, arm=np.array([{}] * 3)), "column 'arm' has type object"),
        (lying, "column 'seconds' has type float64, shape .1000000000"),
        (lambda kept: changed(kept, seconds=np.ones(MUCH)), "bytes unpacked; no more than 1,048,576 are taken"),
    ],
)
def test_what_is_no_samples_file_is_refused(make, says, kept):
    """Without loading it: not what is damaged, changed, too large, or would run code."""
    with pytest.raises(LabError, match=f"given: .*{says}|given: {says}"):
        check(io.BytesIO(make(kept)), "given", MUCH)
    check(io.BytesIO(kept.read_bytes()), "given", MUCH)
