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
from collections.abc import Iterator, Mapping
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

_DOWNLOAD_PATIENCE, _PATIENCE = 900.0, 60.0
"""Seconds for a download of Python or of libraries, and for an answer of a Python."""

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
    """Yield the environments of a plan, each of which can run its arms. Raise LabError that names the environment.

    While they are open, a temporary folder leads their Pythons to the lab's package, and to none of its libraries.
    """
    found = Environments({}, {})
    if not plan.environments:
        yield found
        return
    interpreters: dict[str, Interpreter] = {}
    with tempfile.TemporaryDirectory(prefix="clientlab-env-") as own:
        Path(own, _PACKAGE.name).symlink_to(_PACKAGE)
        for name, spec in plan.environments.items():
            try:
                folder = spec.folder or str(_built(spec))
                interpreters[name] = Interpreter(_program(folder), own)
                found.held[name] = Environment(folder=_shown(folder), **_inspected(name, plan, interpreters[name]))
            except LabError as error:
                raise LabError(f"environment {name!r}: {error}") from error
        yield Environments(interpreters, found.held)


def _built(spec: EnvironmentSpec) -> Path:
    """Return the folder of the environment, which is built unless it is in the cache.

    While another process builds it, this one waits. Requirements that are folders or addresses are installed anew each
    time: their code may have changed.
    """
    own = f"{sys.version_info.major}.{sys.version_info.minor}{'t' if 't' in sys.abiflags else ''}"  # t: free-threaded
    python = sys.executable if spec.python is None or spec.python == own else spec.python  # uv might not find our own
    key = hashlib.sha256(json.dumps([python, spec.requirements]).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clientlab" / "environments"
    cache.mkdir(parents=True, exist_ok=True)
    folder, fixed = cache / key, all(map(_is_of_index, spec.requirements))
    with (cache / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_new = not (folder / _COMPLETE).exists()
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
            _uv("venv", "--no-project", "--python", python, str(folder))
        if spec.requirements and (is_new or not fixed):
            anew = () if fixed else ("--reinstall",)
            target = str(folder / "bin" / "python")
            _uv("pip", "install", "--python", target, "--compile-bytecode", *anew, "--", *spec.requirements)
        (folder / _COMPLETE).touch()
    return folder


def _is_of_index(requirement: str) -> bool:
    """Tell whether a requirement names a release of a package index."""
    try:
        return Requirement(requirement).url is None
    except InvalidRequirement:
        return False


def _uv(*words: str) -> None:
    beside = Path(sys.executable).with_name("uv")
    program = str(beside) if beside.is_file() else shutil.which("uv")
    if program is None:
        raise LabError("uv, which builds it, is not installed; pip install uv")
    command = [program, "--quiet", *words]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise LabError(f"uv did not end within {_DOWNLOAD_PATIENCE:g} s") from error
    if ended.returncode:
        reason = mask_text(re.sub(r"[\s×╰─▶│├]+", " ", ended.stderr).strip())
        raise LabError(f"uv can't build it: {reason or f'exit code {ended.returncode}'}")


def _shown(folder: str) -> str:
    """Return the folder as a run file has it, which others may read: without the name of the user."""
    home = Path.home()
    return str(Path("~", *Path(folder).relative_to(home).parts)) if Path(folder).is_relative_to(home) else folder


def _program(given: str) -> str:
    """Return the path of the Python. It is not resolved: a virtual environment's Python is a link to another one."""
    path = Path(given).absolute()
    program = path if path.is_file() else path / "bin" / "python"
    if not program.is_file():
        reason = f"{path} has no bin/python" if path.exists() else f"there is no {path}"
        raise LabError(f"{reason}; name the folder of a virtual environment, or a Python")
    return str(program)


def _inspected(name: str, plan: Plan, python: Interpreter) -> dict[str, Any]:
    """Return what the environment holds, as fields of `Environment`. Raise LabError if it can't run one of its arms."""
    version = _answer([python.program, "-c", _FIRST_LOOK], python)
    if not isinstance(version, list):
        raise LabError(f"{python.program} does not answer as a Python does")
    if tuple(version) < OLDEST:
        shown, oldest = (".".join(map(str, one)) for one in (version, OLDEST))
        raise LabError(f"its Python is {shown}; the lab needs {oldest} or newer")
    arms = [arm for arm in plan.arms if arm.environment == name]
    pairs = [(strategies.find(arm.strategy).name, plan.workloads[arm.workload]) for arm in arms]
    found: dict[str, Any] = _answer(python.command(_CHECK), python, pickle.dumps(pairs))
    for arm, refusal in zip(arms, found.pop("refusals"), strict=True):
        if refusal is not None:
            raise LabError(f"arm {arm.name!r}: {refusal}")
    return found


def _answer(command: list[str], python: Interpreter, given: bytes = b"") -> Any:
    """Return the JSON that a process of the environment wrote to its standard output. Raise LabError if it failed."""
    try:
        ended = child_processes.answer(command, given, python.variables(), _PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"no answer within {_PATIENCE:g} s"
        raise LabError(f"{python.program} does not run: {reason}") from error
    if ended.returncode:
        last = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise LabError(f"{python.program} can't run the lab's trials: {last or f'exit code {ended.returncode}'}")
    try:
        return json.loads(ended.stdout)
    except ValueError as error:
        raise LabError(f"{python.program} does not answer as a Python does") from error
