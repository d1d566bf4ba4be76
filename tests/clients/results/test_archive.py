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


def test_a_run_that_goes_on_is_given_away_with_the_trials_that_it_has(store, other, tmp_path):
    """Those of its journal lie in the run file of the zip."""
    goes_on = RUN.model_copy(update={"run": "20250102-030405-run-abcd", "status": "running", "trials": []})
    store.claim(goes_on.run)
    store.save(goes_on)
    store.append(goes_on.run, a_trial("urllib3"))
    archive.pack(store, goes_on.run, tmp_path / "x.zip")
    assert archive.unpack(other, tmp_path / "x.zip", force=False) == store.read(goes_on.run)
    assert len(other.read(goes_on.run).trials) == 1


def test_a_run_of_that_name_is_kept_unless_forced(store, tmp_path):
    """Forced, the one that comes takes its place as a whole."""
    archive.pack(store, RUN.run, tmp_path / "x.zip")
    (store.folder / RUN.run / "mine").touch()
    with pytest.raises(LabError, match=r"run 20240506-070809-run-abcd is in .* already; replace it with force"):
        archive.unpack(store, tmp_path / "x.zip", force=False)
    assert (store.folder / RUN.run / "mine").exists()
    archive.unpack(store, tmp_path / "x.zip", force=True)
    assert not (store.folder / RUN.run / "mine").exists()
    assert store.read(RUN.run) == RUN


DOCUMENT = json.loads(RUN.model_dump_json())


def a_zip(*members, **changes):
    """A function that writes a zip of the run, changed, and of further members."""

    def make(path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr("run.json", json.dumps(DOCUMENT | changes))
            for name, content in members:
                made.writestr(name, content)

    return make


def encrypted(path) -> None:
    """The flag alone: nobody has the password."""
    a_zip()(path)
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


def without_run(path) -> None:
    """Samples of no run."""
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("samples/trial-0000.npz", b"")


def cut_short(path) -> None:
    """The end is missing."""
    a_zip()(path)
    path.write_bytes(path.read_bytes()[:-30])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.write_bytes(b"nonsense"), "not a whole zip of a run"),
        (cut_short, "not a whole zip of a run"),
        (lambda _: None, "No such file or directory"),
        (without_run, "there is no run.json in it"),
        (encrypted, "'run.json' is encrypted"),
        (a_zip(("../evil", b"")), "'../evil' has no place in a run"),
        (a_zip(("/etc/evil", b"")), "'/etc/evil' has no place in a run"),
        (a_zip(("samples/../../evil.npz", b"")), "has no place in a run"),
        (a_zip(("samples//trial-0000.npz", b"")), "has no place in a run"),
        (a_zip(("samples/trial-0000.npz/", b"")), "has no place in a run"),
        (a_zip(("samples\\trial-0000.npz", b"")), "has no place in a run"),
        (a_zip(("samples/trial-0000.exe", b"")), "has no place in a run"),
        (a_zip(("samples/trial-0001.npz", b"")), "the run has no trial 1"),
        (a_zip(("samples/trial-0000.npz", b"x")), "samples/trial-0000.npz: not samples of a trial"),
        (a_zip(run="../evil"), "'../evil' can't be a folder's name"),
        (a_zip(run=".."), "'..' can't be a folder's name"),
        (a_zip(run=""), "'' can't be a folder's name"),
        (a_zip(format=2), "run.json: format 2, and this clientlab reads format 1"),
        (a_zip(status="x"), "run.json: status: .*changed or damaged"),
    ],
)
def test_what_is_no_parcel_is_refused_and_leaves_nothing(make, says, other, tmp_path):
    """One line that names the file; nothing in the folder, nothing outside it."""
    make(tmp_path / "x.zip")
    before = set(tmp_path.rglob("*"))
    with pytest.raises(LabError, match=says) as caught:
        archive.unpack(other, tmp_path / "x.zip", force=False)
    assert str(caught.value).startswith(f"{tmp_path / 'x.zip'}: ")
    assert "\n" not in str(caught.value)
    left = {path for path in tmp_path.rglob("*") if path != other.folder}
    assert left == before


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused(other, tmp_path):
    """The second would hide what was looked at."""
    a_zip(("run.json", b"{}"))(tmp_path / "x.zip")
    with pytest.raises(LabError, match=r"'run.json' has no place in a run"):
        archive.unpack(other, tmp_path / "x.zip", force=False)


@pytest.mark.parametrize(("limit", "says"), [("MOST_BYTES", "bytes; no"), ("MOST_RUN_BYTES", "bytes of run.json; no")])
def test_what_would_fill_the_disk_is_refused_by_its_size(limit, says, store, other, tmp_path, monkeypatch):
    """An archive that would fill the disk is refused by its stated size before its members are read."""
    archive.pack(store, RUN.run, tmp_path / "x.zip")
    monkeypatch.setattr(archive, limit, 100)
    with pytest.raises(LabError, match=f"{says} more than 100 are taken"):
        archive.unpack(other, tmp_path / "x.zip", force=False)
    assert not other.folder.exists()


def test_a_run_that_is_damaged_is_not_given_away(store, tmp_path):
    """Nor one under a name that is no zip's."""
    with pytest.raises(LabError, match=r"x.tar: .*end the name with .zip"):
        archive.pack(store, RUN.run, tmp_path / "x.tar")
    with pytest.raises(LabError, match=r"none/x.zip: No such file or directory"):
        archive.pack(store, RUN.run, tmp_path / "none" / "x.zip")
    store.find(RUN.run).write_text("{}")
    with pytest.raises(LabError, match="format None"):
        archive.pack(store, RUN.run, tmp_path / "x.zip")
    assert not list(tmp_path.glob("*.zip"))
