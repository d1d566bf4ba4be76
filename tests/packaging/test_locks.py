"""The locks follow from pyproject.toml."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from running import ROOT


def test_the_locks_were_compiled_after_the_last_change_of_the_dependencies():
    """Each dependency is locked in a version that pyproject.toml permits; otherwise run scripts/lock."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, groups = document["project"], document["dependency-groups"]
    lock = (ROOT / "requirements" / "development.txt").read_text(encoding="utf-8")
    locked = re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.MULTILINE)
    for text in sum([*project["optional-dependencies"].values(), *groups.values()], project["dependencies"]):
        wanted = Requirement(text)
        versions = [version for name, version in locked if name == canonicalize_name(wanted.name)]
        assert versions, text
        assert all(version in wanted.specifier for version in versions), text
