"""What the tests of runs share."""

from __future__ import annotations

import pytest

from clientlab.results.store import Store
from clients.running.runs import NAME


@pytest.fixture
def store(tmp_path):
    """A results folder in which the run has its place."""
    made = Store(tmp_path)
    made.claim(NAME)
    return made
