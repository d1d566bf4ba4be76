"""Help that fits a screen, and completion: `run --help`, `--help-all`, the list of subcommands, `completion`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from clientlab.cli import commands
from clientlab.cli.run import run
from clientlab.cli.run_help import GROUPS

PROGRAM = Path(sys.executable).with_name("clientlab")


def options_of(text: str) -> list[str]:
    """The lines of a help text that begin with an option."""
    return [line for line in text.splitlines() if line.startswith("  -")]


@pytest.mark.parametrize("columns", ["80", "100"])
def test_the_help_of_run_fits_a_screen(columns, clientlab, monkeypatch):
    """At most 60 lines, each of them whole: an option has its help beside it; the ten most used come first."""
    monkeypatch.setenv("COLUMNS", columns)
    lines = clientlab("run", "--help").out.splitlines()
    options = options_of("\n".join(lines))
    assert len(lines) <= 60
    assert max(map(len, lines)) <= int(columns)
    assert len([line for line in lines if line.startswith("   ")]) == 0
    assert all(len(line.strip().split("  ")) > 1 for line in options)
    heads = [line.strip() for line in lines if line.endswith(":")]
    assert heads == ["Most used:", "Load:", "Network:", "Server:", "Precision:", "Output:", "More:"]
    first = lines[lines.index("Most used:") + 1 :][:11]
    assert len(options_of("\n".join(first))) == 10
    assert first[-1] == ""


def test_every_option_of_run_is_in_one_group_and_shown_in_full(clientlab, monkeypatch):
    """`--help-all` has each option once, with the whole of its help."""
    monkeypatch.setenv("COLUMNS", "100")
    named = [field for group in GROUPS for field in (*group.shown, *group.further)]
    options = [option for option in run.params if isinstance(option, click.Option)]
    assert sorted(named) == sorted(option.name for option in options)
    assert all(option.help and not option.help.startswith("[") for option in options)
    text = clientlab("run", "--help-all").out
    assert len(options_of(text)) == len(named)
    assert "Several, as 1ms,20ms, are an axis." in " ".join(text.split())


def test_the_subcommands_for_a_team_stand_apart(clientlab):
    """Each subcommand has a whole sentence in one line."""
    text = clientlab("--help").out
    everybody, _, team = text.partition("Commands:")[2].partition("For a team:")
    assert [line.split()[0] for line in team.splitlines() if line.strip()] == ["serve", "work", "kube", "up"]
    assert [line.split()[0] for line in everybody.splitlines() if line.strip()][:3] == ["run", "init", "report"]
    context = click.Context(commands)
    assert set(commands.list_commands(context)) <= set(text.split())
    assert "..." not in everybody + team


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder of the test."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("shell", "file"),
    [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", ".config/fish/completions/clientlab.fish")],
)
def test_completion_adds_one_line_for_the_users_shell_once(shell, file, clientlab, home, monkeypatch):
    """What stands in the file stays, and `--print` shows the line alone."""
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    (home / file).parent.mkdir(parents=True, exist_ok=True)
    (home / file).write_text("mine")
    assert clientlab("completion").out == f"{home / file} has the line; open a new shell\n"
    assert clientlab("completion", shell).out == f"{home / file} has the line already\n"
    assert (home / file).read_text() == f"mine\n{clientlab('completion', '--print').out}"


@pytest.mark.parametrize(("shell", "says"), [("/bin/tcsh", "SHELL is 'tcsh'"), ("", "SHELL is 'not set'")])
def test_completion_of_another_shell_is_refused(shell, says, clientlab, home, monkeypatch):
    """And so is a file that cannot be written."""
    monkeypatch.setenv("SHELL", shell)
    said = clientlab("completion")
    assert (said.code, said.err) == (2, f"clientlab: completion: {says}; name one of bash, zsh, fish\n")
    (home / ".bashrc").mkdir()
    said = clientlab("completion", "bash")
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert ".bashrc: Is a directory" in said.err


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["run", "sem"], ["semaphore"]),
        (["run", "-t", "aiohttp@wor"], ["aiohttp@workers"]),
        (["report", "2024"], ["2024-mine"]),
    ],
)
def test_bash_completes_experiments_strategies_and_runs(words, completed, clientlab, tmp_path):
    """Click's script forgot all names before the item that stands for files, and a word ended at its @."""
    (tmp_path / "results" / "2024-mine").mkdir(parents=True)
    (tmp_path / "results" / "2024-mine" / "run.json").touch()
    script = (
        f"{clientlab('completion', 'bash', '--print').out}\n"
        'compopt() { :; }; COMP_WORDS=(clientlab "$@"); COMP_CWORD=$#; _clientlab_completion clientlab\n'
        'printf "%s\\n" "${COMP_WORDBREAKS//[^@]}" "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", *words],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split("\n") == ["", *completed, ""]
