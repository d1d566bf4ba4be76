"""Help that fits a screen, and completion: `run --help`, the list of subcommands, `completion`."""

from __future__ import annotations

import click
import pytest

from clientlab.cli.run import run
from clientlab.cli.run_help import GROUPS


def options_of(text: str) -> list[str]:
    """The lines of a help text that begin with an option."""
    return [line for line in text.splitlines() if line.startswith("  -")]


def test_every_option_of_run_is_in_one_group(clientlab):
    """`--help` has each option once; there are 40."""
    named = [field for fields in GROUPS.values() for field in fields]
    options = [option for option in run.params if isinstance(option, click.Option)]
    assert sorted(named) == sorted(option.name for option in options)
    assert all(option.help and not option.help.startswith("[") for option in options)
    assert len(options_of(clientlab("run", "--help").out)) == len(named) == 40


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder of the test."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("shell", "file"),
    [("bash", ".bashrc")],
)
def test_completion_adds_one_line_for_the_users_shell_once(shell, file, clientlab, home, monkeypatch):
    """What stands in the file stays, and `--print` shows the line alone."""
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    (home / file).parent.mkdir(parents=True, exist_ok=True)
    (home / file).write_text("mine")
    assert clientlab("completion").code == clientlab("completion", shell).code == 0
    assert (home / file).read_text() == f"mine\n{clientlab('completion', '--print').out}"


def test_completion_of_another_shell_is_refused(clientlab, home, monkeypatch):
    """And so is a file that cannot be written."""
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    said = clientlab("completion")
    assert (said.code, "'tcsh'" in said.err) == (2, True)
    (home / ".bashrc").mkdir()
    said = clientlab("completion", "bash")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert ".bashrc" in said.err
