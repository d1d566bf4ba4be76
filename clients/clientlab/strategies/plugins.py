"""Clients and executors that are not listed: classes of a user's file, and entry points of installed packages.

A class with the methods `open`, `send` and `close` is a client; one with `open`, `run` and `close` is an executor.
Class attributes set the fields of its spec, and all have defaults: `policy`, `http` and `native` of a client; `needs`,
`needs_count`, `concurrent`, `unbounded`, `threads` and `clock_first` of an executor.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_args

from clientlab.errors import PluginError
from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.specs import ClientSpec, ExecutorSpec, Kind, Policy

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "clientlab.strategies"

_CLIENT = ("open", "send", "close")
_EXECUTOR = ("open", "run", "close")
_IN_FILE = re.compile(r"(?P<file>.+\.py):(?P<name>\w+)")


def client_spec(name: str) -> ClientSpec:
    """The spec of a client: listed, of a package, or ``path/to/file.py:Class``. Raises KeyError, PluginError."""
    if name in CLIENTS:
        return CLIENTS[name]
    path = file_of(name)
    if path is not None:
        return _client(absolute(name), absolute(name), load_class(absolute(name)), str(path.resolve()))
    return installed().clients[name]


def executor_spec(name: str) -> ExecutorSpec:
    """The spec of an executor, by the same three kinds of name. Raises KeyError, PluginError."""
    if name in EXECUTORS:
        return EXECUTORS[name]
    path = file_of(name)
    if path is not None:
        return _executor(absolute(name), absolute(name), load_class(absolute(name)), str(path.resolve()))
    return installed().executors[name]


def is_executor(cls: type) -> bool:
    """Whether a class has the methods of an executor, and lacks one of a client's."""
    return not _missing(cls, _EXECUTOR) and bool(_missing(cls, _CLIENT))


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

    def add(self, point: EntryPoint) -> None:
        """Load one entry point and keep its object. Raises PluginError."""
        source = point.dist.name if point.dist else point.module
        with _as_plugin_error(f"strategy {point.name!r}: {point.value} of {source} can't be loaded"):
            found = point.load()
        if inspect.isclass(found):
            make = _executor if is_executor(found) else _client
            found = make(point.name, point.value, found, source)
        name = getattr(found, "name", point.name)
        if name in CLIENTS or name in EXECUTORS or name in self.sources:
            raise PluginError(f"strategy {name!r} of {source}: the name is taken; the package is to choose another")
        self.sources[name] = source
        if isinstance(found, ClientSpec):
            self.clients[name] = found
        elif isinstance(found, ExecutorSpec):
            self.executors[name] = found
        else:
            self.others[name] = found


@cache
def installed() -> Installed:
    """All entry points of the group, loaded once."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - 15 ms, which a listed strategy's trial does not need

    found = Installed()
    for point in entry_points(group=GROUP):
        try:
            found.add(point)
        except PluginError as error:
            found.faults[point.name] = error
    return found


def is_of_file(name: str) -> bool:
    """Whether a strategy's name holds ``path/to/file.py:Class``, as its client or its executor. Loads nothing."""
    return re.search(r"\.py:\w", name) is not None


def file_of(import_path: str) -> Path | None:
    """The file of ``path/to/file.py:Class``; None for any other name."""
    found = _IN_FILE.fullmatch(import_path)
    return None if found is None else Path(found["file"])


def absolute(import_path: str) -> str:
    """``path/to/file.py:Class`` with an absolute path, for a process in another folder. Other names are unchanged."""
    found = _IN_FILE.fullmatch(import_path)
    return import_path if found is None else f"{Path(found['file']).resolve()}:{found['name']}"


def hash_of(path: Path) -> str:
    """The SHA-256 of a user's file. The run file has it in place of a version."""
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def load_class(import_path: str) -> type:
    """The class at ``path/to/file.py:Class``. Raises PluginError with file, line and the error of the file."""
    path, name = file_of(import_path), import_path.rpartition(":")[2]
    if path is None:
        raise ValueError(import_path)
    module = _module(path)
    found = getattr(module, name, None)
    if not inspect.isclass(found):
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        classes = [key for key in own if inspect.isclass(getattr(module, key))]
        raise PluginError(f"{path} has no class {name}; it has {', '.join(classes) or 'none'}")
    return found


def line_of(error: BaseException, path: Path) -> int | None:
    """The innermost line of the file in the error's traceback; None if the file is not in it."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


@cache
def _module(path: Path) -> ModuleType:
    """The imported file, under a module name that no library has."""
    if not path.is_file():
        raise PluginError(f"there is no file {path}; write the path of a Python file, and :CLASS behind it")
    name = f"clientlab_user_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path}: Python can't import it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _as_plugin_error(f"{path} can't be imported", path):
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _as_plugin_error(what: str, path: Path | None = None) -> Iterator[None]:
    """Any exception of a plug-in's code becomes a PluginError of two lines: what and where, then the exception."""
    try:
        yield
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        line = line_of(error, path) if path else None
        where = f", line {line}" if line else ""
        raise PluginError(f"{what}{where}\n{type(error).__name__}: {error}") from error


def _client(name: str, import_path: str, cls: type, distribution: str) -> ClientSpec:
    _check_methods(cls, _CLIENT, "a client")
    kind: Kind = "asyncio" if inspect.iscoroutinefunction(getattr(cls, "send")) else "blocking"  # noqa: B009
    policy = _one_of(cls, "policy", "pool", get_args(Policy))
    http = _one_of(cls, "http", "1.1", ("1.1", "2"))
    native = bool(getattr(cls, "native", False))
    return ClientSpec(name, import_path, kind, distribution, policy, _first_line(cls), http, native=native)


def _executor(name: str, import_path: str, cls: type, distribution: str) -> ExecutorSpec:
    _check_methods(cls, _EXECUTOR, "an executor")
    return ExecutorSpec(
        name,
        import_path,
        needs=_one_of(cls, "needs", "blocking", get_args(Kind)),
        description=_first_line(cls),
        needs_count=bool(getattr(cls, "needs_count", False)),
        concurrent=bool(getattr(cls, "concurrent", True)),
        unbounded=bool(getattr(cls, "unbounded", False)),
        threads=bool(getattr(cls, "threads", False)),
        clock_first=bool(getattr(cls, "clock_first", False)),
        distribution=distribution,
    )


def _missing(cls: type, methods: tuple[str, ...]) -> list[str]:
    return [name for name in methods if not callable(getattr(cls, name, None))]


def _check_methods(cls: type, methods: tuple[str, ...], what: str) -> None:
    if missing := _missing(cls, methods):
        raise PluginError(f"{_location(cls)}\nit lacks {', '.join(missing)}: {what} has {', '.join(methods)}")


def _one_of(cls: type, attribute: str, default: str, known: tuple[Any, ...]) -> Any:
    value = getattr(cls, attribute, default)
    if value not in known:
        raise PluginError(f"{_location(cls)}\n{attribute} is {value!r}; it must be one of {', '.join(known)}")
    return value


def _location(cls: type) -> str:
    """The class with its file and line."""
    try:
        return f"{inspect.getsourcefile(cls)}, line {inspect.getsourcelines(cls)[1]}: class {cls.__name__}"
    except (OSError, TypeError):  # the source is not available
        return f"class {cls.__module__}.{cls.__name__}"


def _first_line(cls: type) -> str:
    return (inspect.getdoc(cls) or cls.__name__).splitlines()[0]
