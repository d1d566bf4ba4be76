"""The results folder: whole files whatever happens, and runs by name."""

from __future__ import annotations

import resource

import pytest

from clientlab.errors import IncompleteRun, LabError
from clientlab.results.document import Run
from clientlab.results.store import JOURNAL_FILE, RUN_FILE, Store
from clients.documents import a_run, a_trial
from clients.report_runs import a_measured_trial

NAMES = ("20240101-000000-demo-aaaa", "20240101-000001-demo-bbbb", "20240102-000000-run-cccc")


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path)
    for name in NAMES:
        made.claim(name)
        made.save(a_run(a_trial("urllib3"), name=name))
    return made


def running(name: str) -> Run:
    return a_run(a_trial("urllib3"), name=name).model_copy(update={"trials": [], "status": "running"})


def test_a_trial_that_was_appended_is_in_the_run_when_it_is_read(store):
    """The run file stays as it was when the run began; the next save takes the trials over, and the journal goes."""
    name, trials = NAMES[2], [a_measured_trial("urllib3", order + 1, 0.1 + 0.2, order=order) for order in range(3)]
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


@pytest.fixture
def journal(store):
    store.save(running(NAMES[2]))
    store.append(NAMES[2], a_measured_trial())
    return store.folder / NAMES[2] / JOURNAL_FILE


def test_a_journal_that_is_left_behind_adds_no_trial_twice(store, journal):
    """A process was killed between the save of the whole run and the removal of the journal."""
    content = journal.read_bytes()
    store.save(store.read(NAMES[2]))
    journal.write_bytes(content)
    assert [trial.order for trial in store.read(NAMES[2]).trials] == [0]


def test_a_line_that_was_cut_short_is_no_trial(store, journal):
    """The process was killed while it wrote the line, and has told nobody that the trial is saved."""
    whole = journal.read_bytes()
    for length in (1, len(whole) // 2, len(whole) - 1):
        journal.write_bytes(whole + whole[:length])
        assert [trial.order for trial in store.read(NAMES[2]).trials] == [0]


@pytest.mark.parametrize(
    ("line", "message"), [(b"{}\n", "line 2: arm: Field required"), (b"nonsense\n", "line 2: Invalid JSON: ")]
)
def test_a_journal_with_a_line_that_is_no_trial_of_the_run_is_refused(line, message, store, journal):
    with journal.open("ab") as file:
        file.write(line)
    with pytest.raises(LabError, match=f"{message}[^\n]*; the file was changed or damaged$"):
        store.read(NAMES[2])


def test_a_full_disk_leaves_the_last_save_whole(store):
    """A process that may write no larger file: the error names it, nothing is lost, nothing is left over."""
    file, limits = store.find(NAMES[0]), resource.getrlimit(resource.RLIMIT_FSIZE)
    before, run = file.read_bytes(), store.read(NAMES[0])
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, limits[1]))
    try:
        with pytest.raises(IncompleteRun, match=f"{file}: File too large"):
            store.save(run.model_copy(update={"trials": run.trials * 2}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [RUN_FILE]


def test_a_name_can_be_chosen_until_a_run_has_it(store):
    """A run that failed before its first trial leaves a folder with logs, and no run file."""
    assert store.claim("mine").is_dir()
    assert store.claim(store.new_name("mine")).is_dir()
    store.save(a_run(name="mine"))
    with pytest.raises(LabError, match="has a run of this name"):
        store.new_name("mine")


def test_a_run_is_found_by_its_name_or_its_beginning_or_as_the_last(store):
    """A run of another name counts from when it began, and not from when its file was written."""
    assert store.find("20240101-000001") == store.folder / NAMES[1] / RUN_FILE
    for name, year in (("my-run", 2025), ("zebra", 2023)):
        store.claim(name)
        store.save(a_run(name=name).model_copy(update={"created": f"{year}-01-01T00:00:00+00:00"}))
    assert store.names() == ["zebra", *NAMES, "my-run"]
    assert store.find("last").parent.name == "my-run"
    store.remove("my-run")
    assert store.find("last").parent.name == NAMES[2]


@pytest.mark.parametrize(
    ("asked", "says"),
    [("20240101", f"fits {NAMES[0]}, {NAMES[1]};"), ("nothing", f"is not in .*; there are {', '.join(NAMES)}")],
)
def test_a_name_that_fits_none_or_several_is_refused_with_what_there_is(asked, says, store):
    with pytest.raises(LabError, match=says):
        store.find(asked)
