"""Environments that uv builds from a version of Python and requirements, and keeps in the user's cache."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from packaging.requirements import InvalidRequirement, Requirement

from clientlab.errors import LabError
from clientlab.redaction import without_queries
from clientlab.results.plan import EnvironmentSpec

OLDEST = (3, 11)
"""The oldest Python that runs the lab's modules."""

_COMPLETE = "clientlab-complete"
"""A file in a folder whose build has ended. Without it, the folder is what an interrupted build left."""
_PATIENCE = 900.0
"""Seconds for a download of Python or of libraries."""


def check_version(name: str, version: Sequence[int]) -> None:
    """Raises LabError if the environment's Python is too old for the lab's modules."""
    if tuple(version) < OLDEST:
        shown, oldest = (".".join(map(str, one)) for one in (version, OLDEST))
        raise unusable(name, f"its Python is {shown}; the lab needs {oldest} or newer")


def check_unlike(specs: Mapping[str, EnvironmentSpec]) -> None:
    """Raises LabError if two environments would be built of the same: they would be one folder."""
    names: dict[tuple[str, ...], str] = {}
    for name, spec in specs.items():
        if spec.folder is None:
            made_of = _python_of(spec), *spec.requirements
            if made_of in names:
                raise unusable(
                    name, f"it has the Python and the requirements of {names[made_of]!r}; leave one of them out"
                )
            names[made_of] = name


@contextlib.contextmanager
def built(name: str, spec: EnvironmentSpec) -> Iterator[Path]:
    """The folder of the environment, which is built unless it is in the cache. Raises LabError.

    While it is used, no other process builds it anew: a run's later rounds would measure other code.
    """
    python = _python_of(spec)
    if version := re.match(r"[a-z]*@?(\d+)\.(\d+)", python):  # before uv downloads it
        check_version(name, [int(version[1]), int(version[2])])
    key = hashlib.sha256(json.dumps([python, spec.requirements]).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clientlab" / "environments"
    cache.mkdir(parents=True, exist_ok=True)
    folder, lasting = cache / key, all(map(_is_of_index, spec.requirements))
    with (cache / f"{key}.lock").open("w") as lock:
        if not (lasting and (folder / _COMPLETE).exists()):
            _lock_alone(name, lock, wait=lasting)
            if not (folder / _COMPLETE).exists():
                shutil.rmtree(folder, ignore_errors=True)
                _uv(name, "venv", "--no-project", "--python", python, str(folder))
                _install(name, folder, spec.requirements)
                (folder / _COMPLETE).touch()
            elif not lasting:
                _install(name, folder, spec.requirements)
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield folder


def _lock_alone(name: str, lock: TextIO, *, wait: bool) -> None:
    """Lock an environment to build it. `wait`: for another process that builds it too, since nobody can use it yet."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise unusable(name, "another run measures in it; wait for its end") from None


def _python_of(spec: EnvironmentSpec) -> str:
    """What uv is to look for. The lab's own version is the lab's own Python, which uv might not find and download."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}{'t' if 't' in sys.abiflags else ''}"  # t: free-threaded
    return sys.executable if spec.python is None or spec.python == own else spec.python


def _install(name: str, folder: Path, requirements: list[str]) -> None:
    """Install the requirements. Those of a folder or an address are built anew: their code may have changed."""
    if requirements:
        anew = [] if all(map(_is_of_index, requirements)) else ["--reinstall"]
        python = str(folder / "bin" / "python")
        _uv(name, "pip", "install", "--python", python, "--compile-bytecode", *anew, "--", *requirements)


def _is_of_index(requirement: str) -> bool:
    """Whether a requirement names a release of a package index."""
    try:
        return Requirement(requirement).url is None
    except InvalidRequirement:
        return False


def _uv(name: str, *words: str) -> None:
    """Run uv. Raises LabError with what it reports."""
    beside = Path(sys.executable).with_name("uv")
    program = str(beside) if beside.is_file() else shutil.which("uv")
    if program is None:
        raise unusable(name, "uv, which builds it, is not installed; pip install uv")
    command = [program, "--quiet", *words]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise unusable(name, f"uv did not end within {_PATIENCE:g} s") from error
    if ended.returncode:
        reason = re.sub(r"[\s×╰─▶│├]+", " ", ended.stderr).strip()
        shown = without_queries(reason) or f"exit code {ended.returncode}"
        raise unusable(name, f"uv can't build it: {shown}")


def unusable(name: str, message: str) -> LabError:
    """The error of an environment, which names it."""
    return LabError(f"environment {name!r}: {message}")
