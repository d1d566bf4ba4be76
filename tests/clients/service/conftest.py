"""Where the services of these tests keep their runs."""

from __future__ import annotations

import pytest

from clientlab.results.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")
