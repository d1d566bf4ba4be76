"""A new experiment file, and what a shell completes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from clientlab.cli import commands
from clientlab.cli.listing import template
from clientlab.running.due import seconds_of
from clients.plans import checked_plan

KEYS = re.findall(r"^#(?=[a-z])(.*)$", template(), re.MULTILINE)


def test_a_new_experiment_can_be_run_as_it_is(clientlab):
    """In full and in its quick form: about as long as it says, with claims that can be settled."""
    said = clientlab("init")
    assert (said.code, said.err) == (0, "")
    file = Path("experiment.toml")
    assert seconds_of(checked_plan(file)) < 40
    quick = checked_plan(file, quick=True)
    assert len(quick.claims) == 2
    assert quick.rounds >= 3
    assert clientlab("init", "search.toml").code == 0
    assert Path("search.toml").exists()


def test_each_key_that_the_new_experiment_offers_is_valid(tmp_path):
    assert len(KEYS) > 8
    path = tmp_path / "mine.toml"
    for line in KEYS:
        path.write_text(template().replace(f"\n#{line}\n", f"\n{line}\n"))
        assert path.read_text() != template()
        checked_plan(path)


@pytest.mark.parametrize("name", ["mine.toml", "Mine.toml", "none/mine.toml"])
def test_no_file_is_overwritten_and_none_that_could_not_be_run_is_written(name, clientlab):
    Path("mine.toml").write_text("mine")
    said = clientlab("init", name)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert said.err.startswith(f"clientlab: {name}")
    assert Path("mine.toml").read_text() == "mine"
    assert [path.name for path in Path().iterdir()] == ["mine.toml"]


@pytest.mark.usefixtures("clientlab")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["ru"], {"run", "runs"}),
        (["run", "sem"], {"semaphore", "sem"}),
        (["run", "-t", "pycurl@"], {"pycurl@multi", "pycurl@threads", "pycurl@"}),
        (["report", ""], {"last", "20240506-070809000-mine-abcd", ""}),
    ],
)
def test_a_shell_completes_subcommands_experiments_strategies_and_runs(words, completed, tmp_path):
    """Where a file may be named, the shell adds its files: that is the item with the word itself."""
    (tmp_path / "results" / "20240506-070809000-mine-abcd").mkdir(parents=True)
    (tmp_path / "results" / "20240506-070809000-mine-abcd" / "run.json").touch()
    *before, word = words
    found = ShellComplete(commands, {}, "clientlab", "_CLIENTLAB_COMPLETE").get_completions(before, word)
    assert {item.value for item in found} == completed
