"""Files in the results folder that are no run, or that hold what no run can have: refused, and named."""

from __future__ import annotations

import gzip
import json

import pytest

from clientlab.errors import LabError
from clientlab.results.store import read_run
from clients.documents import a_run, a_trial

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
        (changed(format=2), "format 2"),
        (changed(experiment={}), "experiment.name"),
        (changed(trials=[{"strategy": "x"}]), r"trials.0.arm"),
        (changed(status="dome"), "status"),
        (changed(trials=[json.loads(a_trial("other").model_dump_json())]), "other"),
    ],
    ids=["truncated", "packed and truncated", "wrong checksum", "foreign", "without format", "too new", "empty plan",
         "empty trial", "status", "unknown arm"],
)  # fmt: skip
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
