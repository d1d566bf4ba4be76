"""The environments of a plan, built by uv or found, and checked before all trials."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clientlab
from clientlab import strategies
from clientlab.errors import LabError
from clientlab.machine import child_processes
from clientlab.observing.process_handle import Interpreter
from clientlab.results.document import Environment
from clientlab.results.plan import EnvironmentSpec, Plan
from clientlab.text import mask_text

OLDEST = (3, 11)  # the oldest Python that runs the lab's modules
_COMPLETE = "clientlab-complete"  # a file that marks a finished build
_PINNED = re.compile(r"[\w.-]+\s*(\[[^]]*\])?\s*={2,3}\s*[^\s*,;@/]+(\s*;.*)?")
"""A requirement that names one release of an index."""
_ANSWER_SECONDS = 60.0
_BUILD_SECONDS = 900.0
_PACKAGE = Path(clientlab.__file__).parent


@dataclass(frozen=True)
class Environments:
    """Environments by name."""

    interpreters: dict[str, Interpreter]
    held: dict[str, Environment]
    """What they hold, for the run file."""


@contextlib.contextmanager
def open_environments(plan: Plan) -> Iterator[Environments]:
    """Yield the environments of a plan, each of which can run its arms.

    Raise LabError that names the environment.

    While they are open, a temporary folder gives their Pythons the lab's package
    without the lab's libraries.
    """
    environments = Environments({}, {})
    with contextlib.ExitStack() as stack:
        lab = stack.enter_context(tempfile.TemporaryDirectory(prefix="clientlab-env-"))
        Path(lab, _PACKAGE.name).symlink_to(_PACKAGE)
        for name, spec in plan.environments.items():
            try:
                if spec.folder:
                    folder = Path(spec.folder)
                    _keep(folder, stack)
                else:
                    folder = _build(spec, stack)
                python = Interpreter(_find_program(folder), lab)
                held = Environment(folder=_show(folder), **_inspect(name, plan, python))
            except LabError as error:
                raise LabError(f"environment {name!r}: {error}") from error
            environments.interpreters[name] = python
            environments.held[name] = held
        yield environments


def _show(folder: Path) -> str:
    """Return a path for the run file, which must not name the user."""
    home = Path.home()
    if folder.is_relative_to(home):
        folder = Path("~", folder.relative_to(home))
    return str(folder)


def _keep(folder: Path, stack: contextlib.ExitStack) -> None:
    """Keep other runs from changing an environment that the lab built.

    A run is resumed in it. Raise LabError if another run changes it now.
    """
    lock_file = folder.with_suffix(".lock")
    if not (folder / _COMPLETE).exists() or not lock_file.exists():
        return
    lock = stack.enter_context(lock_file.open())
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LabError("another run is using it; wait for its end") from error


def _build(spec: EnvironmentSpec, stack: contextlib.ExitStack) -> Path:
    """Return the folder of an environment.

    No other run changes it until the stack is closed.

    An environment whose requirements are all pinned is built once, and never changed.
    Others are brought up to date for each run: there may be a new release, and the code
    in a folder or at an address may have changed. If another run uses the folder of
    such an environment, this run has one of its own.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if "t" in sys.abiflags:  # free-threaded
        version += "t"
    # uv might not find our own.
    python = sys.executable
    if spec.python not in {None, version}:
        python = str(spec.python)
    digest = hashlib.sha256(json.dumps([python, spec.requirements]).encode())
    key = digest.hexdigest()[:16]
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = caches / "clientlab" / "environments"
    cache.mkdir(parents=True, exist_ok=True)
    if all(map(_PINNED.fullmatch, spec.requirements)):
        with (cache / f"{key}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _install(spec, python, cache / key)
        return cache / key
    anew = ["--upgrade"]
    if any(re.search("[@/]", requirement) for requirement in spec.requirements):
        anew.append("--reinstall")
    for number in itertools.count():
        folder = cache / f"{key}-{number}"
        lock = stack.enter_context(folder.with_suffix(".lock").open("w"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # another run uses it
        _install(spec, python, folder, *anew)
        break
    return folder


def _install(spec: EnvironmentSpec, python: str, folder: Path, *anew: str) -> None:
    """Build an environment unless it is complete.

    `anew`: options that bring a complete one up to date.
    """
    is_new = not (folder / _COMPLETE).exists()
    if is_new:
        # An interrupted build may have left it.
        shutil.rmtree(folder, ignore_errors=True)
        _run_uv("venv", "--no-project", "--python", python, str(folder))
    if spec.requirements and (is_new or anew):
        target = str(folder / "bin" / "python")
        options = ["--python", target, "--compile-bytecode", *anew]
        _run_uv("pip", "install", *options, "--", *spec.requirements)
    (folder / _COMPLETE).touch()


def _run_uv(*words: str) -> None:
    beside = Path(sys.executable).with_name("uv")
    program = str(beside) if beside.is_file() else shutil.which("uv")
    if program is None:
        raise LabError("uv, which builds it, is not installed; pip install uv")
    try:
        ended = subprocess.run(
            [program, "--quiet", *words],
            capture_output=True,
            text=True,
            timeout=_BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"uv did not end within {_BUILD_SECONDS:g} s") from error
    if ended.returncode:
        reason = mask_text(re.sub(r"[\s×╰─▶│├]+", " ", ended.stderr).strip())
        reason = reason or f"exit code {ended.returncode}"
        raise LabError(f"uv can't build it: {reason}")


def _find_program(folder: Path) -> str:
    """Return the path of the Python.

    It is not resolved: a virtual environment's Python is a link to another one.
    """
    path = folder.absolute()
    program = path if path.is_file() else path / "bin" / "python"
    if not program.is_file():
        reason = f"{path} has no bin/python" if path.exists() else f"there is no {path}"
        raise LabError(
            f"{reason}; name the folder of a virtual environment, a Python, or a"
            " package with its version"
        )
    return str(program)


def _inspect(name: str, plan: Plan, python: Interpreter) -> dict[str, Any]:
    """Return what the environment holds, as fields of `Environment`.

    Raise LabError if it can't run one of its arms.
    """
    code = "import sys; print(list(sys.version_info[:3]))"
    version = _ask([python.program, "-c", code], python)
    if not isinstance(version, list):
        raise LabError(f"{python.program} does not answer as a Python does")
    if tuple(version) < OLDEST:
        shown = ".".join(map(str, version))
        oldest = ".".join(map(str, OLDEST))
        raise LabError(f"its Python is {shown}; the lab needs {oldest} or newer")
    arms = [arm for arm in plan.arms if arm.environment == name]
    pairs = [
        (strategies.find(arm.strategy).name, plan.workloads[arm.workload])
        for arm in arms
    ]
    command = python.command("clientlab.running.environment_check")
    content: dict[str, Any] = _ask(command, python, pickle.dumps(pairs))
    for arm, refusal in zip(arms, content.pop("refusals"), strict=True):
        if refusal is not None:
            raise LabError(f"arm {arm.name!r}: {refusal}")
    return content


def _ask(command: list[str], python: Interpreter, given: bytes = b"") -> Any:
    """Return the JSON that a process of the environment wrote to its standard output.

    Raise LabError if it failed.
    """
    try:
        ended = child_processes.run_with_input(
            command, given, python.variables(), _ANSWER_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        silent = f"no answer within {_ANSWER_SECONDS:g} s"
        reason = getattr(error, "strerror", None) or silent
        raise LabError(f"{python.program} does not run: {reason}") from error
    if ended.returncode:
        output = ended.stderr.decode(errors="replace").strip()
        reason = output.rpartition("\n")[2] or f"exit code {ended.returncode}"
        raise LabError(f"{python.program} can't run the lab's trials: {reason}")
    try:
        return json.loads(ended.stdout)
    except ValueError as error:
        raise LabError(f"{python.program} does not answer as a Python does") from error
