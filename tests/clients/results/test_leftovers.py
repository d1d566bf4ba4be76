"""Folders of runs that were killed before they had a file."""

from __future__ import annotations

import os

import pytest

from clientlab.results import leftovers
from clientlab.results.store import Store
from clients.documents import a_run

KILLED, EMPTY, SERVED, YOUNG = (f"20240102-00000000{number}-run-abcd" for number in range(4))
STAYS = ("20240103-000000000-run-abcd", "20240104-000000000-run-abcd", "20240105-000000000-run-abcd", "notes")


@pytest.fixture
def store(tmp_path):
    """Three folders that killed runs left; an empty one of just now, a run, two with other files, one of the user's."""
    made = Store(tmp_path)
    for name in (KILLED, EMPTY, SERVED, YOUNG, *STAYS):
        made.claim(name)
    for name in (KILLED, *STAYS):
        (tmp_path / name / "logs").mkdir()
        (tmp_path / name / ".held").touch()
    made.save(a_run(name=STAYS[0]))
    (tmp_path / STAYS[1] / "mine.txt").touch()
    (tmp_path / STAYS[2] / ".held").unlink()
    (tmp_path / SERVED / "served").touch()
    for name in (EMPTY, SERVED):
        os.utime(tmp_path / name, (0, 0))
    return made


def names(store: Store) -> set[str]:
    return {path.name for path in store.folder.iterdir()}


def test_the_next_start_removes_them_and_nothing_else(store):
    """Also not while a process has one: it is writing its first file."""
    with store.hold(KILLED):
        leftovers.sweep(store)
        assert names(store) == {KILLED, YOUNG, *STAYS}
    leftovers.sweep(store)
    assert names(store) == {YOUNG, *STAYS}
    leftovers.sweep(Store(store.folder / "none"))


@pytest.mark.parametrize("name", ["20240101-120000-train", "20240102-000000000-run-abcd.old"])
def test_a_folder_of_the_users_with_a_date_for_a_name_stays(store, name):
    """Only the lab's whole names are the lab's."""
    (store.folder / name).mkdir()
    os.utime(store.folder / name, (0, 0))
    leftovers.sweep(store)
    assert (store.folder / name).exists()


def test_the_files_of_a_trial_that_was_killed_with_its_lab_go_at_the_next_start(store):
    """Not while a process measures the run; the run's file and the output of failed trials stay."""
    run = store.folder / STAYS[0]
    (run / ".held").touch()
    for name in ("trial-0003", "trial-0004-shard-1"):
        (run / name).mkdir()
        (run / name / "trial.samples").touch()
    (run / "trial-0001").mkdir()
    for name in ("trial.log", "trial-2.log"):
        (run / "trial-0001" / name).touch()
    with store.hold(run.name):
        leftovers.sweep(store)
        assert (run / "trial-0003").exists()
    leftovers.sweep(store)
    assert {path.name for path in run.iterdir()} == {"run.json", ".held", "logs", "trial-0001"}
