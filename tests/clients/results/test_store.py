"""The results folder: files that stay whole, runs by name, files that are refused, and
samples that are kept.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import resource
import threading

import numpy as np
import pytest

from clientlab.analysis.kept_samples import write
from clientlab.errors import IncompleteRun, LabError
from clientlab.results.document import Run
from clientlab.results.store import HOLD_FILE, JOURNAL_FILE, RUN_FILE, Store, read_run
from clientlab.workload.values import Delay
from clientlab.workload.workload import make_workload
from clients.documents import a_measured_trial, a_run, a_trial
from clients.sampled import records_of, samples_of

NAMES = (
    "20240101-000000-demo-aaaa",
    "20240101-000001-demo-bbbb",
    "20240102-000000-run-cccc",
)


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path)
    for name in NAMES:
        made.claim(name)
        made.save(a_run(a_trial("urllib3"), name=name))
    return made


def running(name: str) -> Run:
    return a_run(a_trial("urllib3"), name=name).updated(trials=[], status="running")


def test_a_trial_that_was_appended_is_in_the_run_when_it_is_read(store):
    """The run file does not change until the next save, which takes over the trials and
    removes the journal.
    """
    name = NAMES[2]
    trials = [
        a_measured_trial("urllib3", order + 1, 0.1 + 0.2, order=order)
        for order in range(3)
    ]
    store.save(running(name))
    begun = store.find(name).read_bytes()
    for count, trial in enumerate(trials):
        version = store.version(name)
        store.append(name, trial)
        assert store.version(name) != version
        assert store.read(name).trials == trials[: count + 1]
    assert store.find(name).read_bytes() == begun
    whole = store.read(name).updated(status="done")
    store.save(whole)
    assert store.read(name) == whole
    assert [path.name for path in (store.folder / name).iterdir()] == [RUN_FILE]


@pytest.fixture
def journal(store):
    store.save(running(NAMES[2]))
    store.append(NAMES[2], a_measured_trial())
    return store.folder / NAMES[2] / JOURNAL_FILE


def test_a_journal_adds_no_trial_twice_and_no_line_that_was_cut_short(store, journal):
    """A process may be killed while it appends, or between its last save and the
    removal of the journal.
    """
    whole = journal.read_bytes()

    def orders() -> list[int]:
        return [trial.planned.order for trial in store.read(NAMES[2]).trials]

    for length in (1, len(whole) // 2, len(whole) - 1):
        journal.write_bytes(whole + whole[:length])
        assert orders() == [0]
    store.save(store.read(NAMES[2]))
    journal.write_bytes(whole)
    assert orders() == [0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{}\n", "line 2: planned: Field required"),
        (b"nonsense\n", "line 2: Invalid JSON: "),
        (
            f"{a_trial('ghost', order=1).model_dump_json()}\n".encode(),
            "line 2: names arm 'ghost'",
        ),
    ],
)
def test_a_journal_with_a_line_that_is_no_trial_of_the_run_is_refused(
    line, message, store, journal
):
    with journal.open("ab") as file:
        file.write(line)
    expected = f"{message}[^\n]*; the file was changed or damaged$"
    with pytest.raises(LabError, match=expected):
        store.read(NAMES[2])


def test_a_full_disk_leaves_the_last_save_whole(store):
    file = store.find(NAMES[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = file.read_bytes()
    run = store.read(NAMES[0])
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, hard))
    try:
        with pytest.raises(IncompleteRun, match=f"{file}: File too large"):
            store.save(run.updated(trials=run.trials * 2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [RUN_FILE]


def test_a_reader_that_looks_whether_a_run_is_held_does_not_keep_it_from_being_measured(
    store,
):
    """A scrape of the exporter looks for a moment, perhaps while the run begins."""
    with (store.folder / NAMES[0] / HOLD_FILE).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        threading.Timer(0.02, fcntl.flock, (file, fcntl.LOCK_UN)).start()
        with (
            store.hold(NAMES[0]),
            pytest.raises(LabError, match="by another process"),
            store.hold(NAMES[0]),
        ):
            pass


def test_a_name_can_be_chosen_until_a_run_has_it(store):
    assert store.claim("mine").is_dir()
    assert store.claim(store.new_name("mine")).is_dir()
    store.save(a_run(name="mine"))
    with pytest.raises(LabError, match="has a run of this name"):
        store.new_name("mine")


def test_a_run_is_found_by_its_name_or_its_beginning_or_as_the_last(store):
    """Runs are in the order in which they began, not in that of their files."""
    assert store.find("20240101-000001") == store.folder / NAMES[1] / RUN_FILE
    for name, year in (("my-run", 2025), ("zebra", 2023)):
        store.claim(name)
        store.save(a_run(name=name).updated(created=f"{year}-01-01T00:00:00+00:00"))
    assert store.names() == ["zebra", *NAMES, "my-run"]
    assert store.find("last").parent.name == "my-run"
    store.remove("my-run")
    assert store.find("last").parent.name == NAMES[2]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("20240101", f"fits {NAMES[0]}, {NAMES[1]};"),
        ("nothing", f"is not in .*; there are {', '.join(NAMES)}"),
    ],
)
def test_a_name_that_fits_none_or_several_is_refused_with_what_there_is(
    asked, says, store
):
    with pytest.raises(LabError, match=says):
        store.find(asked)


PLAIN = a_run(a_trial("urllib3")).model_dump_json().encode()
PACKED = gzip.compress(PLAIN, mtime=0)


def changed(**changes) -> bytes:
    return json.dumps(json.loads(PLAIN) | changes).encode()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (PLAIN[:-200], "cut short"),
        (PACKED[:-100], "Compressed file ended"),
        (PACKED[:-8] + bytes(8), "CRC"),
        (b"PNG\x00", "not a whole JSON document"),
        (b"{}", "format"),
        (changed(format=1), "format 1"),
        (changed(experiment={}), "experiment.seed"),
        (changed(trials=[{"strategy": "x"}]), r"trials.0.planned"),
        (changed(status="dome"), "status"),
        (changed(trials=[json.loads(a_trial("other").model_dump_json())]), "other"),
    ],
)
def test_a_file_that_is_no_run_of_this_version_is_refused(content, says, tmp_path):
    file = tmp_path / "run.json"
    file.write_bytes(content)
    with pytest.raises(LabError, match=says) as caught:
        read_run(file)
    assert str(caught.value).startswith(f"{file}: ")


def test_a_run_file_may_be_packed_by_gzip(tmp_path):
    for name in ("run.json.gz", "run.json"):
        (tmp_path / name).write_bytes(PACKED)
        assert read_run(tmp_path / name) == a_run(a_trial("urllib3"))


def test_each_column_has_every_request_in_the_order_of_its_start(tmp_path):
    records = records_of([100.5, 101.0, 103.0], [0.25, 0.5, 1.0], [0, 6, 64])
    records["elapsed"] = [0.125, 0.25, 0.5]
    records["bytes"] = [150, 0, 0]
    records["status"] = [200, 0, 0]
    kinds = {6: "reset", 64: "other:Odd"}
    samples = samples_of(records, np.array([7, 5, 9]), kinds)
    workload = make_workload(requests=3, delay=Delay.parse("100ms"), elapsed=True)
    kept = write(tmp_path, a_trial("urllib3", 2, order=3), workload, samples, 100.0)
    expected = {
        "trial": [3, 3, 3],
        "arm": ["urllib3"] * 3,
        "round": [2, 2, 2],
        "number": [7, 5, 9],
        "start_seconds": [0.5, 1.0, 3.0],
        "seconds": [0.25, 0.5, 1.0],
        "status": [200, 0, 0],
        "error": ["", "reset", "other:Odd"],
        "bytes": [150, 0, 0],
        "delay_seconds": [0.1] * 3,
        "overhead_seconds": [0.15, 0.4, 0.9],
        "elapsed_seconds": [0.125, 0.25, 0.5],
        "first_byte_seconds": [np.nan] * 3,
    }
    with np.load(kept) as columns:
        told = {name: columns[name].tolist() for name in columns.files}
    assert told.keys() == expected.keys()
    for name, values in expected.items():
        if name.endswith("seconds"):
            assert told[name] == pytest.approx(values, nan_ok=True), name
        else:
            assert told[name] == values, name
    assert [path.name for path in kept.parent.iterdir()] == ["trial-0003.npz"]
