"""Files in the results folder that are no run, or that hold what no run can have: refused, and named."""

from __future__ import annotations

import gzip
import json

import pytest

from clientlab.errors import LabError
from clientlab.results.plan import Claim
from clientlab.results.store import read_run
from clients.documents import a_run, a_trial

CLAIM = Claim(name="faster", text="a is faster", kind="less", a="a", b="b")


def changed(**changes) -> str:
    """A run file with other values at its top."""
    return json.dumps(json.loads(a_run(a_trial("urllib3")).model_dump_json()) | changes)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (a_run(a_trial("urllib3")).model_dump_json()[:-200], "cut short"),
        ("PNG\x00", "not a whole JSON document"),
        ("{}", "format None"),
        (changed(format=2), "format 2"),
        (changed(experiment={}), "experiment.name"),
        (changed(trials=[{"strategy": "x"}]), r"trials.0.arm"),
        (changed(status="dome"), "status"),
        (changed(trials=[json.loads(a_trial("other").model_dump_json())]), "other"),
    ],
    ids=["truncated", "foreign", "without format", "too new", "empty plan", "empty trial", "status", "unknown arm"],
)
def test_a_file_that_is_no_run_of_this_version_is_refused(content, says, tmp_path):
    """One line that names the file and what is wrong with it."""
    file = tmp_path / "run.json"
    file.write_text(content)
    with pytest.raises(LabError, match=says) as caught:
        read_run(file)
    assert str(caught.value).startswith(f"{file}: ")


def test_a_run_file_may_be_packed_by_gzip(tmp_path):
    """It is the same run, whatever the file is called."""
    run = a_run(a_trial("urllib3"))
    for name in ("run.json.gz", "run.json"):
        (tmp_path / name).write_bytes(gzip.compress(run.model_dump_json().encode()))
        assert read_run(tmp_path / name) == run


PACKED = gzip.compress(a_run(a_trial("urllib3")).model_dump_json().encode(), mtime=0)


@pytest.mark.parametrize(
    "content",
    [PACKED[:-100], PACKED[:-8] + bytes(8)],
    ids=["cut short", "another checksum"],
)
def test_a_packed_file_that_is_no_run_is_refused(content, tmp_path):
    """In one line."""
    file = tmp_path / "run.json.gz"
    file.write_bytes(content)
    with pytest.raises(LabError, match=r"run\.json\.gz: "):
        read_run(file)
