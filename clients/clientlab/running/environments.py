"""The environments of a plan: built by uv or found, each inspected and checked before anything is measured."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

import clientlab
from clientlab import child_processes, strategies
from clientlab.errors import LabError
from clientlab.measuring.trial_handle import Interpreter
from clientlab.redaction import mask_text
from clientlab.results.document import Environment
from clientlab.results.plan import EnvironmentSpec, Plan

OLDEST = (3, 11)
"""The oldest Python that runs the lab's modules."""

_COMPLETE = "clientlab-complete"
"""A file in a folder whose build has ended. Without it, the folder is what an interrupted build left."""
_DOWNLOAD_PATIENCE = 900.0
"""Seconds for a download of Python or of libraries."""


def check_version(name: str, version: Sequence[int]) -> None:
    """Raises LabError if the environment's Python is too old for the lab's modules."""
    if tuple(version) < OLDEST:
        shown, oldest = (".".join(map(str, one)) for one in (version, OLDEST))
        raise unusable(name, f"its Python is {shown}; the lab needs {oldest} or newer")


def built(name: str, spec: EnvironmentSpec) -> Path:
    """Return the folder of the environment, which is built unless it is in the cache. Raises LabError.

    While another process builds it, this one waits.
    """
    python = _python_of(spec)
    if version := re.match(r"[a-z]*@?(\d+)\.(\d+)", python):  # before uv downloads it
        check_version(name, [int(version[1]), int(version[2])])
    key = hashlib.sha256(json.dumps([python, spec.requirements]).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clientlab" / "environments"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / key
    with (cache / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _COMPLETE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            _uv(name, "venv", "--no-project", "--python", python, str(folder))
            _install(name, folder, spec.requirements)
            (folder / _COMPLETE).touch()
        elif not all(map(_is_of_index, spec.requirements)):
            _install(name, folder, spec.requirements)
    return folder


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
    beside = Path(sys.executable).with_name("uv")
    program = str(beside) if beside.is_file() else shutil.which("uv")
    if program is None:
        raise unusable(name, "uv, which builds it, is not installed; pip install uv")
    command = [program, "--quiet", *words]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise unusable(name, f"uv did not end within {_DOWNLOAD_PATIENCE:g} s") from error
    if ended.returncode:
        reason = re.sub(r"[\s×╰─▶│├]+", " ", ended.stderr).strip()
        shown = mask_text(reason) or f"exit code {ended.returncode}"
        raise unusable(name, f"uv can't build it: {shown}")


def unusable(name: str, message: str) -> LabError:
    """The error of an environment, which names it."""
    return LabError(f"environment {name!r}: {message}")


_PATIENCE = 60.0
_FIRST_LOOK = """
import sys
sys.path = [folder for folder in sys.path if folder]
import json
print(json.dumps(list(sys.version_info[:3])))
"""
"""Any Python can run it: `-P` is new in 3.11. The empty name is the current folder, which may hold a `json.py`."""
_CHECK = "clientlab.running.environment_check"
_PACKAGE = Path(clientlab.__file__).parent


@dataclass(frozen=True)
class Environments:
    """By name: the Python of each, and what it holds, for the run file."""

    interpreters: Mapping[str, Interpreter]
    held: dict[str, Environment]


@contextlib.contextmanager
def opened(plan: Plan) -> Iterator[Environments]:
    """The environments of a plan, each of which can run its arms. Raises LabError that names the environment.

    While they are open, a temporary folder leads their Pythons to the lab's package, and to none of its libraries.
    """
    if not plan.environments:
        yield Environments({}, {})
        return
    with tempfile.TemporaryDirectory(prefix="clientlab-env-") as own:
        Path(own, _PACKAGE.name).symlink_to(_PACKAGE)
        folders = {name: spec.folder or str(built(name, spec)) for name, spec in plan.environments.items()}
        found = {name: Interpreter(_program(name, given), own) for name, given in folders.items()}
        for name, python in found.items():
            _check_python(name, python)
        held = {
            name: Environment(folder=_shown(folders[name]), **_inspected(name, plan, found[name])) for name in found
        }
        yield Environments(found, held)


def _shown(folder: str) -> str:
    """The folder as a run file has it, which others may read: without the name of the user."""
    home = Path.home()
    return str(Path("~", *Path(folder).relative_to(home).parts)) if Path(folder).is_relative_to(home) else folder


def _program(name: str, given: str) -> str:
    """The path of the Python. It is not resolved: a virtual environment's Python is a link to another one."""
    path = Path(given).absolute()
    program = path if path.is_file() else path / "bin" / "python"
    if not program.is_file():
        reason = f"{path} has no bin/python" if path.exists() else f"there is no {path}"
        raise unusable(name, f"{reason}; name the folder of a virtual environment, or a Python")
    return str(program)


def _check_python(name: str, python: Interpreter) -> None:
    """Raises LabError for a Python that is too old, and for a program that answers anything else."""
    found = _answer(name, [python.program, "-c", _FIRST_LOOK], python)
    match found:
        case [int(), int(), int()]:
            check_version(name, found)
        case _:
            raise unusable(name, f"{python.program} does not answer as a Python does")


def _inspected(name: str, plan: Plan, python: Interpreter) -> dict[str, Any]:
    """What the environment holds, as fields of `Environment`. Raises LabError if it can't run one of its arms."""
    arms = [arm for arm in plan.arms if arm.environment == name]
    pairs = [(strategies.find(arm.strategy).name, plan.workloads[arm.workload]) for arm in arms]
    found: dict[str, Any] = _answer(name, python.command(_CHECK), python, pickle.dumps(pairs))
    for arm, refusal in zip(arms, found.pop("refusals"), strict=True):
        if refusal is not None:
            raise unusable(name, f"arm {arm.name!r}: {refusal}")
    return found


def _answer(name: str, command: list[str], python: Interpreter, given: bytes = b"") -> Any:
    """The JSON that a process of the environment wrote to its standard output. Raises LabError if it failed.

    When this returns, neither the process nor any child of it in its process group is left.
    """
    try:
        ended = child_processes.answer(command, given, python.variables(), _PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"no answer within {_PATIENCE:g} s"
        raise unusable(name, f"{python.program} does not run: {reason}") from error
    if ended.returncode:
        last = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise unusable(name, f"{python.program} can't run the lab's trials: {last or f'exit code {ended.returncode}'}")
    try:
        return json.loads(ended.stdout)
    except (ValueError, RecursionError) as error:
        raise unusable(name, f"{python.program} does not answer as a Python does") from error
