"""The hashed locks fit pyproject.toml, and what pyproject.toml names is used."""

from __future__ import annotations

import ast
from importlib.metadata import packages_distributions

import pytest

from docs.pages import ROOT
from generate import locks

NOT_IMPORTED = {"gunicorn", "uvloop"}
"""gunicorn is started as a program; its worker class for aiohttp imports uvloop."""


def test_the_locks_of_the_repository_fit():
    """Run scripts/generate after a change of pyproject.toml's dependencies: it calls scripts/lock."""
    assert locks.misfits() == []


def imported(folder: str) -> set[str]:
    """Top-level names of all modules that the Python files of a folder import."""
    found: set[str] = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("folder", ["clients", "servers"])
def test_every_dependency_of_an_image_is_imported(folder):
    """Its lock has no package of pyproject.toml that the code of the folder does not use."""
    names = imported(folder)
    used = {
        distribution.lower().replace("_", "-")
        for module, distributions in packages_distributions().items()
        if module in names
        for distribution in distributions
    }
    assert locks.wanted_by(folder) - used - NOT_IMPORTED == set()
