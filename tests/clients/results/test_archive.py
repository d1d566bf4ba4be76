"""A run as one file: what goes out comes back, and what is not such a file leaves nothing behind."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

from clientlab.errors import LabError
from clientlab.results import archive, kept_samples
from clientlab.results.store import Store
from clientlab.samples.log_reader import RECORD, Samples
from clientlab.workload.workload import Workload
from clients.documents import a_run, a_trial

RUN = a_run(a_trial("urllib3"), name="20240506-070809-run-abcd")


@pytest.fixture
def store(tmp_path):
    """A folder with one run, which has kept its samples."""
    made = Store(tmp_path / "results")
    made.claim(RUN.run)
    made.save(RUN)
    samples = Samples(np.zeros(2, RECORD), np.arange(2), {}, {}, {})
    kept_samples.write(made.folder / RUN.run, RUN.trials[0], Workload(), samples, 0.0)
    (made.folder / RUN.run / "logs").mkdir()
    return made


@pytest.fixture
def other(tmp_path):
    """Somebody else's folder."""
    return Store(tmp_path / "other")


def test_a_run_comes_back_as_it_went_out(store, other, tmp_path):
    """To the byte, with its samples and without its logs."""
    assert archive.pack(store, "2024", tmp_path / "x.zip") == 1
    assert archive.unpack(other, tmp_path / "x.zip", force=False) == RUN
    names = ("run.json", "samples/trial-0000.npz")
    for name in names:
        assert (other.folder / RUN.run / name).read_bytes() == (store.folder / RUN.run / name).read_bytes()
    found = {str(p.relative_to(other.folder / RUN.run)) for p in other.folder.rglob("*") if p.is_file()}
    assert found == set(names)
    assert [path.name for path in other.folder.iterdir()] == [RUN.run]


DOCUMENT = json.loads(RUN.model_dump_json())


def a_zip(*members, **changes):
    """A function that writes a zip of the run, changed, and of further members."""

    def make(path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr("run.json", json.dumps(DOCUMENT | changes))
            for name, content in members:
                made.writestr(name, content)

    return make


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_bytes(b"nonsense"),
        lambda _: None,
        a_zip(("samples/../../evil.npz", b"")),
        a_zip(("samples/trial-0000.npz", b"x")),
        a_zip(run="../evil"),
        a_zip(format=2),
    ],
    ids=["foreign", "missing", "path", "samples", "name", "too new"],
)
def test_what_is_no_parcel_is_refused_and_leaves_nothing(make, other, tmp_path):
    """Nothing is in the folder, and nothing outside it."""
    make(tmp_path / "x.zip")
    before = set(tmp_path.rglob("*"))
    with pytest.raises(LabError, match=r"x\.zip"):
        archive.unpack(other, tmp_path / "x.zip", force=False)
    assert {path for path in tmp_path.rglob("*") if path != other.folder} == before
