"""A current folder with packages and modules of the names of libraries: each leaves a mark when it is imported."""

from __future__ import annotations

from pathlib import Path

SHADOWS = (
    "aiohttp", "clientlab", "ephem", "flask", "gunicorn", "mockupstream", "multidict", "numpy", "psutil", "requests",
    "urllib3", "uvloop", "werkzeug", "yarl",
)  # fmt: skip
"""Packages: of what is measured, of what serves, and of the lab."""

MODULES = ("argparse", "asyncio", "http", "importlib", "json", "logging", "multiprocessing", "pickle", "random", "uuid")
"""Modules of Python."""


def make(folder: Path) -> Path:
    """Write the packages and the modules into the folder; the folder of the marks."""
    marks = folder / "marks"
    marks.mkdir()
    for name in SHADOWS:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(_code(marks, name))
    for name in MODULES:
        (folder / f"{name}.py").write_text(_code(marks, name))
    return marks


def left(marks: Path) -> dict[str, str]:
    """Name of an imported module → the command line of the process that imported it."""
    return {path.name: path.read_text() for path in sorted(marks.iterdir())}


def _code(marks: Path, name: str) -> str:
    """It needs no module that another of these could replace."""
    return f"import sys\nopen({str(marks / name)!r}, 'w').write(' '.join(sys.orig_argv))\n"
