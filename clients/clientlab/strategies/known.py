"""The clients and executors that this process knows: the listed ones, and the plug-ins that were admitted.

Names of strategies come from documents too: from experiments, run files and requests, which anybody may have written.
They are looked up here, and nothing is loaded, neither a file nor an entry point. `clientlab.strategies.plugins` loads
plug-ins and keeps them here. Only the command line of the person who starts the process gives it names.
"""

from __future__ import annotations

import inspect
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from clientlab.errors import LabError, PluginError
from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.plugin_names import absolute, file_of
from clientlab.strategies.specs import ClientSpec, ExecutorSpec, client_of, executor_of


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
