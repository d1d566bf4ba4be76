"""The hashed locks fit pyproject.toml."""

from __future__ import annotations

import pytest

from generate import locks

PROJECT = """
[project]
name = "clientlab"
dependencies = ["Flask>=3.1", "numpy>=2.2"]

[project.optional-dependencies]
all = ["httpx[http2]>=0.28"]
dev = ["clientlab[all]", "ruff==1.0"]
"""
NUMPY = """\
numpy==2.4.6 ; python_full_version < '3.12' \\
    --hash=sha256:00
    # via clientlab (pyproject.toml)
numpy==2.5.5 ; python_full_version >= '3.12' \\
    --hash=sha256:01
    # via clientlab (pyproject.toml)
"""
LOCKS = {
    "servers.in": "# The image of upstreams.\nflask\n",
    "servers-only.in": "flask\n",
    "servers.txt": "flask==3.1.0 \\\n    --hash=sha256:02\n    # via\n    #   -r requirements/servers.in\n",
    "clients.txt": NUMPY + "h2==4.0 \\\n    # via httpx\nhttpx==0.28.1 \\\n    # via clientlab (pyproject.toml)\n",
    "development.txt": NUMPY
    + "flask==3.2 \\\n    # via\n    #   clientlab (pyproject.toml)\n    #   other\n"
    + "httpx==0.28.1 \\\n    # via clientlab (pyproject.toml)\nruff==1.0\n    # via clientlab (pyproject.toml)\n",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose locks fit."""
    (tmp_path / "requirements").mkdir()
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    for name, text in LOCKS.items():
        (tmp_path / "requirements" / name).write_text(text)
    monkeypatch.setattr(locks, "ROOT", tmp_path)
    return tmp_path


def test_the_locks_of_the_repository_fit():
    """Run scripts/generate after a change of pyproject.toml's dependencies: it calls scripts/lock."""
    assert locks.misfits() == []


@pytest.mark.usefixtures("project")
def test_locks_fit_that_have_every_library_in_a_permitted_version():
    """One version for each Python, libraries of the project's other extras, and what libraries need themselves."""
    assert locks.misfits() == []


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("numpy>=2.2", "numpy>=2.5", ["clients.txt has numpy 2.4.6, 2.5.5, not numpy>=2.5",
                                      "development.txt has numpy 2.4.6, 2.5.5, not numpy>=2.5"]),
        ('"ruff==1.0"', '"ruff==1.0", "new>=1"', ["development.txt lacks new>=1"]),
        ('"Flask>=3.1", ', "", ["servers.txt has flask, which pyproject.toml does not name",
                              "development.txt has flask, which pyproject.toml does not name"]),
    ],
    ids=["version", "lacking", "left"],
)  # fmt: skip
def test_a_lock_that_does_not_fit_is_named(old, new, lines, project):
    """With the library, and with what pyproject.toml wants."""
    path = project / "pyproject.toml"
    path.write_text(path.read_text().replace(old, new))
    assert locks.misfits() == [f"requirements/{line}" for line in lines]
