"""Which code measured the stored runs: a commit of the history, without changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from clientlab.results import machine
from docs.stored_runs import stored_run
from findings import __main__ as findings
from findings import storing
from findings.page import run_file, stored_names

ROOT = Path(__file__).resolve().parents[2]
_CHANGED = "measured with code that was changed and never committed so"
_GONE = f"{_CHANGED}, on a commit that a rebase replaced"
NOT_IN_HISTORY = {
    "distance": _GONE,
    "frameworks": _GONE,
    "httpx2-blocking": _CHANGED,
    "keepalive": _GONE,
    "reuse": _GONE,
    "semaphore": _GONE,
    "sessions": _GONE,
    "six-strategies": _GONE,
}
"""Stored runs that are to be measured anew, and why. A run that has been leaves this list."""

NAMES = [*stored_names(), "atlas"]


@pytest.fixture(scope="module")
def history() -> set[str]:
    """The commits and the trees of the history, shortened as run files have them."""
    command = ["git", "-C", str(ROOT), "log", "--format=%H %T"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or (ROOT / ".git" / "shallow").exists():
        pytest.skip("this is no clone with its whole history")
    return {word[:12] for word in done.stdout.split()}


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_run_was_measured_by_code_of_the_history(name, history):
    """Its commit or its tree is there, and no code was changed; a known exception is one no longer if they are."""
    where = stored_run(name).surroundings
    unchanged = where.lab_commit is not None and "changed" not in where.lab_commit
    known = unchanged and bool({where.lab_commit, where.lab_tree} & history)
    assert known == (name not in NOT_IN_HISTORY), f"{run_file(name)}: {where.lab_commit}, tree {where.lab_tree}"


def test_every_exception_is_a_stored_run():
    """A name that no run has would hide a run that is stored later."""
    assert set(NOT_IN_HISTORY) <= set(NAMES)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (["M clients/clientlab/units.py"], "code differs from the commit: M clients/clientlab/units.py"),
        (None, "no commit"),
    ],
)
def test_nothing_is_measured_with_code_that_no_commit_has(changed, says, monkeypatch, capsys):
    """scripts/findings names a changed file in one line, ends with exit code 2, and starts no run."""
    monkeypatch.setattr(storing, "changed_code", lambda: changed)
    monkeypatch.setattr(sys, "executable", "/nonexistent")
    with pytest.raises(SystemExit) as ended:
        findings.measure(["sessions"])
    said = capsys.readouterr().err
    assert (ended.value.code, said.count("\n"), says in said) == (2, 1, True)


def test_the_code_is_what_measures(tmp_path):
    """The folders and files whose change counts as one are there."""
    assert all((ROOT / name).exists() for name in machine._CODE)
    assert machine.changed_code(tmp_path) is None
