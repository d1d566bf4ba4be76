"""The source as a whole: dependencies are used, and no two classes share a name."""

from __future__ import annotations

import ast
from collections import Counter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from generate.locks import wanted_by

ROOT = Path(__file__).parents[2]
NOT_IMPORTED = {"gunicorn", "uvloop"}
"""gunicorn is started as a program; its worker class for aiohttp imports uvloop."""


def classes(folder: str) -> list[str]:
    """Names of the classes at the top level of the Python files of a folder."""
    return [
        node.name
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]


def test_no_two_classes_share_a_name():
    """One name has one meaning, private classes included."""
    folders = ("clients", "servers", "benchmarks", "dashboards", "findings", "generate")
    counts = Counter(name for folder in folders for name in classes(folder))
    assert [name for name, count in counts.items() if count > 1] == []


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
    assert wanted_by(folder) - used - NOT_IMPORTED == set()
