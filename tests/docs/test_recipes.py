"""docs/recipes.md: each command runs, each output is of the command above it, and each recipe is whole."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest

from clientlab.cli import run_command_line
from clientlab.results.store import Store
from docs.pages import ROOT, TEXTS
from findings import recipes, storing
from findings.recipes import DEMO
from generate import registry

PAGE = TEXTS["docs/recipes.md"]
SITUATIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
"""Heading → text of each recipe."""

LINES = {
    name: next(line for line in reversed(block.splitlines()) if line.startswith("clientlab "))
    for name, block in recipes.commands().items()
}
"""Name → the command that measures."""

SHORT = {"-d": "0.2s", "-n": "10", "-c": "4", "--rounds": "1", "--delay": "5ms", "--rtt": "1ms", "--rate": "100/s"}
SHORT_SEARCH = {"-d": "0.3s", "--find-from": "800/s"}
SLOW = {"asyncio", "capacity", "crawler", "downloads", "threads"}  # about two seconds each, or more


def short(line: str) -> list[str]:
    """The command with fewer requests or less time, and one round. A search has one strategy: each takes seconds."""
    words = shlex.split(line)[1:]
    search = "--find-max" in words
    for index, word in enumerate(words[:-1]):
        words[index + 1] = (SHORT_SEARCH if search else SHORT).get(word, words[index + 1])
    if search:
        second = words.index("-t", words.index("-t") + 1)
        words = words[:second] + words[second + 2 :]
    if words[1].endswith(".toml"):
        words += ["-n", SHORT["-n"], "--delay", SHORT["--delay"]]
    return [*words, "--rounds", "1"]


def environment(folder: Path) -> None:
    """A virtual environment whose only package is this Python's urllib3."""
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in ("urllib3", f"urllib3-{distribution('urllib3').version}.dist-info"):
        (packages / name).symlink_to(str(distribution("urllib3").locate_file(name)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the page's files, where the commands run."""
    for name, text in recipes.files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in LINES if name != DEMO]
)
def test_the_command_runs(name, folder, capfd):
    """In a short form, against the lab's own upstream: every arm is measured and no request fails."""
    words = short(LINES[name])
    for path in re.findall(r"--env \w+=(\S+)", LINES[name]):
        environment(folder / path)
    assert run_command_line(words) == 0, capfd.readouterr().err
    run = Store(Path("results")).read("last")
    assert {trial.arm for trial in run.trials} == {arm.name for arm in run.experiment.arms}
    assert [(trial.status, trial.errors) for trial in run.trials] == [("done", {})] * len(run.trials)


@pytest.mark.slow
@pytest.mark.parametrize("line", sorted(set(re.findall(r"`(clientlab [^`]+)`", PAGE))))
@pytest.mark.usefixtures("folder")
def test_the_command_of_a_sentence_runs(line, capfd):
    """Such as the check of a client of one's own."""
    code = run_command_line(shlex.split(line)[1:])
    assert code in {0, 1}, capfd.readouterr().err  # 1: the client differs from the listed ones


@pytest.mark.parametrize("name", [name for name in LINES if recipes.run_file(name).exists()])
def test_an_output_is_of_the_command_above_it(name):
    """Whoever changes a command has to measure it again, by scripts/recipes."""
    assert recipes.stored_run(name).experiment.command == LINES[name], f"run scripts/recipes {name}"


def test_a_stored_run_is_shown():
    """None is left of a command that the page has no more."""
    assert {path.name for path in recipes.RUNS.iterdir()} <= {recipes.run_file(name).name for name in LINES}


def test_an_unknown_output_is_refused():
    """In one line that names those that there are, before anything is measured."""
    words = [sys.executable, "-m", "findings.recipes", "thraeds"]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "no output 'thraeds' in recipes.md; there are demo, threads, " in ended.stderr


def test_nothing_is_measured_with_code_that_no_commit_has(monkeypatch, capsys):
    """As for the findings: nobody could measure it again."""
    monkeypatch.setattr(storing, "changed_code", lambda: ["M clients/clientlab/units.py"])
    with pytest.raises(SystemExit, match="2"):
        recipes.measure("threads")
    assert "code differs from the commit: M clients/clientlab/units.py" in capsys.readouterr().err


def test_an_output_that_was_not_measured_yet_states_it(monkeypatch, tmp_path):
    """A page can be written before its runs."""
    monkeypatch.setattr(recipes, "RUNS", tmp_path)
    assert "`scripts/recipes threads`" in recipes.output("threads")
    assert "`scripts/recipes demo`" in recipes.demo_table()


@pytest.mark.parametrize("name", [name for name in LINES if name != DEMO])
def test_an_output_fits_the_page(name):
    """At most 100 columns and 50 lines."""
    lines = recipes.output(name).splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 50


def test_there_are_eight_and_the_first_table_leads_to_each():
    """In the same order."""
    linked = re.findall(r"\]\(#([a-z0-9-]+)\) \|$", PAGE, re.MULTILINE)
    assert linked == [re.sub(r"[^a-z0-9 ]", "", heading.lower()).replace(" ", "-") for heading in SITUATIONS]
    assert len(linked) == 8


@pytest.mark.parametrize("heading", SITUATIONS)
def test_a_recipe_is_whole(heading):
    """The question, the command, the output, how to decide and what to change, in this order."""
    parts = ['*"', "\nclientlab run ", "<!-- generated: output-", "**How to decide.**", "**What to change.**"]
    places = [SITUATIONS[heading].find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)


def test_every_output_is_written_by_the_generator():
    """A block that the registry lacks would stay as somebody wrote it."""
    blocks = set(re.findall(r"<!-- generated: (\S+) -->", PAGE))
    assert blocks == {entry.marker for entry in registry.GENERATED if entry.path == "docs/recipes.md"}


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_the_code_is_python(code):
    """What a reader pastes has no error of syntax."""
    ast.parse(code)
