"""`run --help` fits a screen."""

from __future__ import annotations

import click

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
