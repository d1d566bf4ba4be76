"""Experiment files that hold no experiment: one line that names the file, in bounded time."""

from __future__ import annotations

import pytest

from clientlab.cli import run_command_line

CONTENTS = {
    "binary": bytes(range(256)) * 100,
    "out of bounds": b"rounds = 1e400\nseed = nan\n",
    "escape": b'"\\u001b]0;x" = 1\n',
}


def refused(path, capsys) -> None:
    assert run_command_line(["run", str(path)]) == 2
    said = capsys.readouterr()
    (line,) = said.err.strip().splitlines()
    assert path.name in line
    assert line.isprintable()
    assert len(line) < 2000


@pytest.mark.parametrize("name", CONTENTS)
def test_a_file_that_is_no_experiment_is_refused_in_a_line(name, tmp_path, capsys):
    """Whatever its bytes are."""
    file = tmp_path / "mine.toml"
    file.write_bytes(CONTENTS[name])
    refused(file, capsys)
