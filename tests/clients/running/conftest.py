"""Fixtures of the tests of runs."""

from __future__ import annotations

import pytest

from clientlab.results.store import Store
from clients.running.runs import NAME


@pytest.fixture
def store(tmp_path):
    """A results folder with a folder for the run."""
    made = Store(tmp_path)
    made.claim(NAME)
    return made
