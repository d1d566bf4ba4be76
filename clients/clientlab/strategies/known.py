"""The clients and executors that this process knows: the listed ones, and the plug-ins that were loaded.

Names of strategies also come from run files. They are looked up here, and nothing is loaded: `plugins.admit` loads what
the command line names, and keeps it here.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import shlex
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from clientlab.errors import LabError, PluginError
from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.specs import ClientSpec, ExecutorSpec, client_of, executor_of

_IN_FILE = re.compile(r"(?P<file>.+\.py):(?P<name>\w+)")
_PAIR = re.compile(r"(?P<client>.+?\.py:\w+|[^@]*)(?:@(?P<executor>.+))?")


def is_of_file(name: str) -> bool:
    """Whether a strategy's name holds ``path/to/file.py:Class``, as its client or its executor."""
    return re.search(r"\.py:\w", name) is not None


def file_of(import_path: str) -> Path | None:
    """The file of ``path/to/file.py:Class``; None for any other name."""
    found = _IN_FILE.fullmatch(import_path)
    return None if found is None else Path(found["file"])


def absolute(import_path: str) -> str:
    """``path/to/file.py:Class`` with an absolute path, for a process in another folder. Other names are unchanged."""
    found = _IN_FILE.fullmatch(import_path)
    return import_path if found is None else f"{Path(found['file']).resolve()}:{found['name']}"


def pair_of(name: str, clients: Container[str]) -> tuple[str, str]:
    """Client and executor of ``client@executor``; without an executor its name is empty.

    A path may hold an @. `clients`: names that are no paths.
    """
    client, _, executor = name.partition("@")
    if client in clients:
        return client, executor
    found = _PAIR.fullmatch(name)
    return (found["client"], found["executor"] or "") if found else (name, "")


def hash_of(path: Path) -> str:
    """The SHA-256 of a user's file. The run file has it in place of a version."""
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@dataclass
class Installed:
    """What the entry points of installed packages give, by name.

    `sources`: name → distribution. `others`: objects that are neither class nor spec. `faults`: the error of each
    entry point that could not be loaded; the others are usable all the same.
    """

    clients: dict[str, ClientSpec] = field(default_factory=dict)
    executors: dict[str, ExecutorSpec] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    faults: dict[str, PluginError] = field(default_factory=dict)


@dataclass
class Admitted:
    """The plug-ins of this process. `files`: path → its module, or the error that its import raised.

    `packages`: None while no entry point was loaded.
    """

    files: dict[Path, ModuleType | PluginError] = field(default_factory=dict)
    packages: Installed | None = None


ADMITTED = Admitted()


def packages() -> Installed:
    """The plug-ins of installed packages that were admitted; empty if none were."""
    return ADMITTED.packages or Installed()


def client_spec(name: str) -> ClientSpec:
    """The spec of a client: listed, of a package, or ``path/to/file.py:Class``. Raises KeyError, LabError."""
    if name in CLIENTS:
        return CLIENTS[name]
    path = file_of(name)
    if path is not None:
        return client_of(absolute(name), absolute(name), class_of(name), str(path.resolve()))
    return packages().clients[name]


def executor_spec(name: str) -> ExecutorSpec:
    """The spec of an executor, by the same three kinds of name. Raises KeyError, LabError."""
    if name in EXECUTORS:
        return EXECUTORS[name]
    path = file_of(name)
    if path is not None:
        return executor_of(absolute(name), absolute(name), class_of(name), str(path.resolve()))
    return packages().executors[name]


def class_of(import_path: str) -> type:
    """The class at ``path/to/file.py:Class`` of an admitted file, or the client that calls the function there.

    Raises PluginError for a file that could not be imported or has neither, LabError for one that nobody admitted.
    """
    path, name = file_of(import_path), import_path.rpartition(":")[2]
    if path is None:
        raise ValueError(import_path)
    module = ADMITTED.files.get(path.resolve())
    if module is None:
        raise LabError(
            f"strategy {import_path!r} is code of a file, which runs only if the command line names it; "
            f"add -t {shlex.quote(import_path)}"
        )
    if isinstance(module, PluginError):
        raise module
    found = getattr(module, name, None)
    if inspect.isclass(found):
        return found
    if callable(found):
        from clientlab.clients.function_client import client_of_function  # noqa: PLC0415 - ssl; gevent patches it first

        return client_of_function(name, found)
    own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    usable = [key for key in own if callable(getattr(module, key)) and not key.startswith("_")]
    raise PluginError(f"{path} has no class or function {name}; it has {', '.join(usable) or 'none'}")
