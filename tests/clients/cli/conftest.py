"""The command line, called as a function or as the program."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import NamedTuple

import pytest

from clientlab.cli import run_command_line
from clientlab.results.store import Store


class Said(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    err: str


@pytest.fixture
def clientlab(capsys, monkeypatch, tmp_path):
    """Call the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    ending = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    before = [signal.getsignal(number) for number in ending]

    def call(*words) -> Said:
        code = run_command_line([str(word) for word in words])
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    yield call
    for number, handler in zip(ending, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def results():
    """The results folder of the commands called here."""
    return Store(Path("results"))
