"""The results folder: whole files whatever happens, and runs by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from clientlab.errors import LabError
from clientlab.results.document import Run
from clientlab.results.journal import JOURNAL_FILE
from clientlab.results.store import RUN_FILE, Store
from clientlab.results.trial import Trial
from clients.documents import a_failed_trial, a_run, a_trial
from clients.report_runs import a_measured_trial

NAMES = ("20240101-000000-demo-aaaa", "20240101-000001-demo-bbbb", "20240102-000000-run-cccc")

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from clientlab.errors import IncompleteRun
from clientlab.results.store import Store, read_run

folder, name = sys.argv[1:]
store = Store(Path(folder))
run = store.read(name)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
size = (store.find(name)).stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, size + 50))
try:
    store.save(run.model_copy(update={"trials": run.trials * 2}))
except IncompleteRun as error:
    print(error)
"""


@pytest.fixture
def store(tmp_path):
    """A folder with three runs."""
    made = Store(tmp_path)
    for name in NAMES:
        made.claim(name)
        made.save(a_run(a_trial("urllib3"), name=name))
    return made


def running(name: str) -> Run:
    """A run that has begun, of more rounds than were measured."""
    return a_run(a_trial("urllib3"), name=name).model_copy(update={"trials": [], "status": "running"})


def saved_trial(order: int, **changes) -> Trial:
    """A trial of the run that goes on, as large as a real one."""
    return a_measured_trial("urllib3", order + 1, order=order, **changes)


def test_a_run_that_was_saved_is_read_back_equal(store):
    """Every figure, to the last digit."""
    run = a_run(a_trial("urllib3", wall=0.1 + 0.2, errors={"reset": 3}), a_failed_trial("pycurl"), name=NAMES[0])
    store.save(run)
    assert store.read(NAMES[0]) == run


def test_a_trial_that_was_appended_is_in_the_run_when_it_is_read(store):
    """The run file stays as it was when the run began; the next save takes the trials over, and the journal goes."""
    name, trials = NAMES[2], [saved_trial(order) for order in range(3)]
    store.save(running(name))
    begun = store.find(name).read_bytes()
    for count, trial in enumerate(trials):
        version = store.version(name)
        store.append(name, trial)
        assert store.version(name) != version
        assert store.read(name).trials == trials[: count + 1]
    assert store.find(name).read_bytes() == begun
    whole = store.read(name).model_copy(update={"status": "done"})
    store.save(whole)
    assert store.read(name) == whole
    assert [path.name for path in (store.folder / name).iterdir()] == [RUN_FILE]


def test_a_journal_that_is_left_behind_adds_no_trial_twice(store):
    """A process was killed between the save of the whole run and the removal of the journal."""
    name = NAMES[2]
    store.save(running(name))
    store.append(name, saved_trial(0))
    journal = (store.folder / name / JOURNAL_FILE).read_bytes()
    store.save(store.read(name))
    (store.folder / name / JOURNAL_FILE).write_bytes(journal)
    assert [trial.order for trial in store.read(name).trials] == [0]


def test_a_line_that_was_cut_short_is_no_trial(store):
    """The process was killed while it wrote the line, and has told nobody that the trial is saved."""
    name = NAMES[2]
    store.save(running(name))
    store.append(name, saved_trial(0))
    whole = (store.folder / name / JOURNAL_FILE).read_bytes()
    for length in (1, len(whole) // 2, len(whole) - 1):
        (store.folder / name / JOURNAL_FILE).write_bytes(whole + whole[:length])
        assert [trial.order for trial in store.read(name).trials] == [0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{}\n", "line 2: arm: Field required"),
        (b"nonsense\n", "line 2: Invalid JSON: "),
    ],
)
def test_a_journal_with_a_line_that_is_no_trial_of_the_run_is_refused(line, message, store):
    """In one line that names the file and what is wrong with it."""
    store.save(running(NAMES[2]))
    store.append(NAMES[2], saved_trial(0))
    with (store.folder / NAMES[2] / JOURNAL_FILE).open("ab") as file:
        file.write(line)
    with pytest.raises(LabError, match=f"{message}[^\n]*; the file was changed or damaged$"):
        store.read(NAMES[2])


@pytest.mark.real
def test_a_full_disk_leaves_the_last_save_whole(store):
    """A process that may write no larger file: the error names it, nothing is lost, nothing is left over."""
    before = store.find(NAMES[0]).read_bytes()
    command = [sys.executable, "-c", FULL_DISK, str(store.folder), NAMES[0]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith(f"{store.find(NAMES[0])}: File too large")
    assert store.find(NAMES[0]).read_bytes() == before
    assert [path.name for path in (store.folder / NAMES[0]).iterdir()] == [RUN_FILE]


def test_a_name_can_be_chosen_until_a_run_has_it(store):
    """A run that failed before its first trial leaves a folder with logs, and no run file."""
    assert store.claim("mine").is_dir()
    assert store.claim(store.new_name("mine")).is_dir()
    store.save(a_run(name="mine"))
    with pytest.raises(LabError, match="has a run of this name"):
        store.new_name("mine")


@pytest.mark.parametrize(("asked", "found"), [("20240101-000001", NAMES[1]), ("last", NAMES[2])])
def test_a_run_is_found_by_its_name_or_its_beginning_or_as_the_last(asked, found, store):
    """As long as the beginning fits one run only."""
    assert store.find(asked) == store.folder / found / RUN_FILE


def test_the_last_run_is_the_latest_by_time(store):
    """A run of another name counts from when it began, and not from when its file was written."""
    for name, year in (("my-run", 2025), ("zebra", 2023)):
        store.claim(name)
        store.save(a_run(name=name).model_copy(update={"created": f"{year}-01-01T00:00:00+00:00"}))
    assert store.find("last").parent.name == "my-run"
    store.remove("my-run")
    assert store.find("last").parent.name == NAMES[2]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("20240101", f"run '20240101' fits {NAMES[0]}, {NAMES[1]}; write more of its name"),
        ("nothing", f"run 'nothing' is not in .*; there are {', '.join(NAMES)}"),
    ],
)
def test_a_name_that_fits_none_or_several_is_refused_with_what_there_is(asked, says, store):
    """The choice is left to the user."""
    with pytest.raises(LabError, match=says):
        store.find(asked)
