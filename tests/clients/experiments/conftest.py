"""Experiment files for tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def mine(tmp_path):
    """Write an experiment file of this text and return its path."""

    def write(text: str):
        path = tmp_path / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write
