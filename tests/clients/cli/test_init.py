"""A new experiment file, and what a shell completes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clientlab.cli.listing import template
from clientlab.experiments.file import read_experiment
from clientlab.running.due import seconds_of

KEYS = re.findall(r"^#(?=[a-z])(.*)$", template(), re.MULTILINE)


def test_a_new_experiment_can_be_run_as_it_is(clientlab):
    """In full and in its quick form: about as long as it says, with claims that can be settled."""
    said = clientlab("init")
    assert (said.code, said.err) == (0, "")
    assert said.out == "experiment.toml is written; measure it with: clientlab run experiment.toml\n"
    file = Path("experiment.toml")
    assert seconds_of(read_experiment(file).checked_plan()) < 40
    quick = read_experiment(file, quick=True).checked_plan()
    assert len(quick.claims) == 2
    assert quick.rounds >= 3
    assert clientlab("init", "search.toml").code == 0
    assert "clientlab run search.toml --quick" in Path("search.toml").read_text()


@pytest.mark.parametrize("line", KEYS)
def test_each_key_that_the_new_experiment_offers_is_valid(line, tmp_path):
    """Each commented key of the new experiment is valid once its # is removed."""
    assert len(KEYS) > 8
    path = tmp_path / "mine.toml"
    path.write_text(template().replace(f"\n#{line}\n", f"\n{line}\n"))
    assert path.read_text() != template()
    read_experiment(path).checked_plan()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mine.toml", "mine.toml exists and was not changed; name another file"),
        ("Mine.toml", "Mine.toml: the file's name is the experiment's; write lower-case letters, digits, '.' and '-'"),
        ("mine", "mine: the file's name is the experiment's; .* then .toml"),
        ("none/mine.toml", "none/mine.toml: No such file or directory"),
        ("folder.toml", "folder.toml exists and was not changed; name another file"),
    ],
)
def test_no_file_is_overwritten_and_none_that_could_not_be_run_is_written(name, says, clientlab):
    """`init` refuses both cases in one line with exit code 2."""
    Path("mine.toml").write_text("mine")
    Path("folder.toml").mkdir()
    said = clientlab("init", name)
    assert (said.code, said.out) == (2, "")
    assert re.fullmatch(f"clientlab: {says}.*\n", said.err)
    assert Path("mine.toml").read_text() == "mine"
    assert sorted(path.name for path in Path().iterdir()) == ["folder.toml", "mine.toml"]


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["ru"], {"run", "runs"}),
        (["run", "sem"], {"semaphore", "sem"}),
        (["run", "-t", "pycurl@"], {"pycurl@multi", "pycurl@processes", "pycurl@threads", "pycurl@"}),
        (["report", ""], {"last", "20240506-070809000-mine-abcd", ""}),
    ],
)
def test_a_shell_completes_subcommands_experiments_strategies_and_runs(words, completed, tmp_path):
    """Where a file may be named, the shell adds its files."""
    (tmp_path / "results" / "20240506-070809000-mine-abcd").mkdir(parents=True)
    (tmp_path / "results" / "20240506-070809000-mine-abcd" / "run.json").touch()
    variables = {
        "_CLIENTLAB_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["clientlab", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [sys.executable, "-m", "clientlab"], env={**os.environ, **variables}, capture_output=True, text=True,
        timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.stderr == ""
    assert {line.partition(",")[2] for line in done.stdout.splitlines()} == completed
