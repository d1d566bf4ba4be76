"""A service and its workers in a folder with code of the names of libraries."""

from __future__ import annotations

from clients.current_folder import left, make
from clients.labs import experiment


def test_a_worker_and_its_jobs_import_nothing_of_the_current_folder(labs, tmp_path, monkeypatch):
    """Agent, job and trial; the service, which the test starts, is isolated as its program is."""
    marks = make(tmp_path)
    monkeypatch.chdir(tmp_path)
    lab = labs.serve(experiment(["aiohttp"], requests=5))
    labs.work(lab, "aiohttp")
    run = labs.await_end(lab)
    assert [trial.status for trial in run.trials] == ["done"]
    assert left(marks) == {}
