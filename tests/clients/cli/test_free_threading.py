"""Trials in a Python that was built for free threading: whether they had a GIL."""

from __future__ import annotations

import shutil

import pytest

PROGRAM = "python3.14t"


@pytest.fixture
def free():
    """The path of a free-threaded Python."""
    found = shutil.which(PROGRAM)
    if found is None:
        pytest.skip(f"{PROGRAM} is not on the PATH: build CPython 3.14 with --disable-gil, or uv python install 3.14t")
    return found


def test_a_trial_without_a_gil_says_so(free, clientlab, server, results):
    """In the run file and in the report's surroundings, without a caution."""
    said = clientlab("run", "-v", "-t", "http.client@threads", "-n", 20, "-c", 2, "--rounds", 1, "--url", server.url,
                     f"--env=free={free}")  # fmt: skip
    assert said.code == 0, said.err
    run = results.read("last")
    assert [(trial.gil, trial.gil_switched_by) for trial in run.trials] == [(False, None)]
    assert "free-threading, GIL off" in said.out
    assert "gil-on" not in {caution.kind for caution in run.cautions}
