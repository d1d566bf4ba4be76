"""Documentation that cannot rot: README and CONTRIBUTING against the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from clientlab import errors
from clientlab.cli import commands
from clientlab.cli.listing import markdown, strategy_rows
from clientlab.runs.document import Run
from clientlab.runs.experiment_check import check_experiment
from clientlab.runs.experiment_file import bundled, read_experiment
from clientlab.strategies import CLIENTS, EXECUTORS, settings_of

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_strategies_is_the_list():
    """`clientlab list --markdown` gives the README's table."""
    table = re.search(r"<!-- strategies -->\n(.*)<!-- /strategies -->", README, re.DOTALL)
    assert table
    assert table[1] == markdown(strategy_rows())


def test_the_settings_are_those_of_clients_and_executors():
    """The table of settings names each of them, and no other."""
    table = re.search(r"\| setting \| of \|\n(.*?)\n\n", README, re.DOTALL)
    assert table
    cells = [line.split("|")[1] for line in table[1].splitlines()[1:]]
    named = {word for cell in cells for word in re.findall(r"[`&?]([a-z_]+)(?=[=`])", cell)}
    places = [row.place for row in (*CLIENTS.values(), *EXECUTORS.values())]
    sizes = {row.size for row in EXECUTORS.values()} - {""}
    assert named == {"pool", "library_defaults", *sizes}.union(*map(settings_of, places))


def test_every_verb_is_in_the_readme_and_every_verb_there_exists():
    """The table of verbs names the command's own."""
    verbs = re.findall(r"^\| `(\w+)[^`]*` \|", README, re.MULTILINE)
    assert sorted(verbs) == sorted(commands.commands)


def test_every_bundled_experiment_is_in_the_table():
    """But for the demo, which has a place of its own."""
    named = re.findall(r"^\| \*\*([a-z-]+)\*\* \| [^|]+ \| [^|]+ \|$", README, re.MULTILINE)
    assert set(named) == set(bundled()) - {"demo"}


def test_the_experiment_that_is_shown_can_be_run(tmp_path):
    """As it stands there."""
    text = re.search(r"<!-- experiment -->\n```toml\n(.*?)```", README, re.DOTALL)
    assert text
    (tmp_path / "search.toml").write_text(text[1])
    shown = read_experiment(tmp_path / "search.toml")
    check_experiment(shown)
    assert len(shown.arms()) == 6
    assert [claim.name for claim in shown.asked_claims()] == ["asyncio-is-faster"]


COMMANDS = re.findall(r"^clientlab (run[^\n|…]*)$", README, re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_the_options_of_the_examples_exist(line):
    """Every example's words are understood."""
    words = [word for word in shlex.split(line) if word.startswith("-")]
    help_text = CliRunner().invoke(commands, ["run", "--help"]).output
    for word in words:
        assert re.search(rf"(^|[ ,]){re.escape(word)}[ ,]", help_text, re.MULTILINE), word


def test_there_are_examples():
    """The pattern that finds them still does."""
    assert len(COMMANDS) >= 3


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_every_file_that_is_linked_or_named_exists(document):
    """Links to files of the repository lead somewhere."""
    text = (ROOT / document).read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (ROOT / target).exists(), target


def test_the_exit_codes_are_those_of_the_code():
    """2 for wrong words, 3 for an incomplete run."""
    assert errors.LabError.exit_code == 2
    assert errors.IncompleteRun.exit_code == 3
    assert "2 the words or the input are wrong" in README
    assert "3 the run is incomplete" in " ".join(README.split())


def test_the_demo_is_the_one_described():
    """Eight strategies, both routes, three rounds."""
    demo = read_experiment(bundled()["demo"])
    assert (len(demo.strategies), demo.routes, demo.rounds) == (8, ["direct", "proxy"], 3)


def test_the_format_of_run_files_is_the_one_described():
    """README and changelog speak of version 2."""
    assert Run.model_fields["format"].default == 2
    assert "version 2" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
