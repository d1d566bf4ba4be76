"""Clients and executors that the lab does not list: a user's file, and entry points of installed packages.

`admit` is the only function of the lab that runs such code. It gets the names of the command line and those of an
experiment that the command line names. Names also come from run files: the other functions only look up what was
admitted in this process.

A class with the methods `open`, `send` and `close` is a client; one with `open`, `run` and `close` is an executor.
Class attributes set the fields of its spec. A function of a file is a client that gets a URL.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_args

from clientlab import settings
from clientlab.errors import LabError, PluginError
from clientlab.strategies.registry import CLIENTS, EXECUTORS, ClientKind, ClientSpec, ExecutorSpec, Policy

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "clientlab.strategies"

ADMITTED: dict[str, ClientSpec | ExecutorSpec | PluginError | None] = {}
"""``/path/to/file.py:NAME``, or the name of an entry point → its spec, its error, or None if there is none."""
_CLASSES: dict[str, Any] = {}
"""Import path → the class of an admitted file."""

_IN_FILE = re.compile(r"(?P<file>.+\.py):(?P<name>\w+)")
_PAIR = re.compile(r"(?P<client>[^@/]*|.+?\.py:\w+)(?:@(?P<executor>.+))?")


def is_of_file(name: str) -> bool:
    """Return whether the client or the executor of a strategy's name is ``path/to/file.py:NAME``."""
    return re.search(r"\.py:\w", name) is not None


def file_of(name: str) -> Path | None:
    """Return the file of ``path/to/file.py:NAME``, or None for any other name."""
    found = _IN_FILE.fullmatch(name)
    return None if found is None else Path(found["file"])


def pair_of(name: str) -> tuple[str, str]:
    """Split ``client@executor``. Without an executor, the second text is empty.

    The path of a file may hold an @, but not before its first slash.
    """
    found = _PAIR.fullmatch(name)
    return (found["client"], found["executor"] or "") if found else (name, "")


def client_spec(name: str) -> ClientSpec:
    """Return the spec of a client: listed or admitted. Raises KeyError, LabError."""
    if name in CLIENTS:
        return CLIENTS[name]
    found = _admitted(name)
    if isinstance(found, ExecutorSpec):
        client = {"blocking": "requests-session", "asyncio": "aiohttp"}[found.needs]
        raise PluginError(f"strategy {name!r} is an executor, and runs a client; write {client}@{name}")
    return found


def executor_spec(name: str) -> ExecutorSpec:
    """Return the spec of an executor: listed or admitted. Raises KeyError, LabError."""
    if name in EXECUTORS:
        return EXECUTORS[name]
    found = _admitted(name)
    if isinstance(found, ClientSpec):
        raise PluginError(f"{name!r} is a client, not an executor; an executor has open, run, close")
    return found


def _admitted(name: str) -> ClientSpec | ExecutorSpec:
    key = _absolute(name)
    if key not in ADMITTED and file_of(name) is not None:
        raise LabError(
            f"strategy {name!r} is code of a file, which runs only if the command line names it; add -t '{name}'"
        )
    found = ADMITTED.get(key)
    if found is None:
        raise KeyError(name)
    if isinstance(found, PluginError):
        raise found
    return found


def _absolute(name: str) -> str:
    """Return ``path/to/file.py:NAME`` with an absolute path, for processes in other folders, or another name as is."""
    found = _IN_FILE.fullmatch(name)
    return name if found is None else f"{Path(found['file']).resolve()}:{found['name']}"


def load(import_path: str) -> Any:
    """Return the class that a spec names, ``module:Class``. Imports its library."""
    if import_path in _CLASSES:
        return _CLASSES[import_path]
    module, _, name = import_path.partition(":")
    return getattr(importlib.import_module(module), name)


def of_packages() -> list[ClientSpec | ExecutorSpec | PluginError]:
    """Return what was admitted of installed packages."""
    return [found for name, found in ADMITTED.items() if found is not None and file_of(name) is None]


def admit(names: Iterable[str]) -> None:
    """Load the code that names of strategies, clients and executors hold. Listed ones need no code.

    Errors are kept: `client_spec` and `executor_spec` raise them.
    """
    named = (part for name in names for part in map(_absolute, pair_of(settings.split(name)[0])))
    known = CLIENTS.keys() | EXECUTORS.keys() | ADMITTED.keys() | {""}
    parts = [part for part in dict.fromkeys(named) if part not in known]
    points = {} if all(map(file_of, parts)) else _entry_points()
    for part in parts:
        path = file_of(part)
        try:
            if path is not None:
                ADMITTED[part] = _of_file(path, part)
            else:
                ADMITTED[part] = _of_package(points[part]) if part in points else None
        except PluginError as error:
            ADMITTED[part] = error


def admit_packages() -> None:
    """Load all entry points of the group."""
    admit(_entry_points())


def _entry_points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - 20 ms, which a listed strategy does not need

    return {point.name: point for point in entry_points(group=GROUP)}


def _of_package(point: EntryPoint) -> ClientSpec | ExecutorSpec:
    """Return the spec of an entry point. Raises PluginError."""
    source = point.dist.name if point.dist else point.module
    with _as_plugin_error(f"strategy {point.name!r}: {point.value} of {source} can't be loaded"):
        loaded = point.load()
    if not inspect.isclass(loaded):
        raise PluginError(f"strategy {point.name!r} of {source}: {point.value} is not a class")
    return _spec_of(loaded, point.name, point.value, source)


def _of_file(path: Path, name: str) -> ClientSpec | ExecutorSpec:
    """Return the spec of a class or function of a file. Raises PluginError."""
    module, attribute = _module(path), name.rpartition(":")[2]
    found = getattr(module, attribute, None)
    if callable(found) and not inspect.isclass(found):
        found = _client_of_function(attribute, found)
    if found is None or not inspect.isclass(found):
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        usable = [key for key in own if callable(getattr(module, key)) and not key.startswith("_")]
        raise PluginError(f"{path} has no class or function {attribute}; it has {', '.join(usable) or 'none'}")
    _CLASSES[name] = found
    return _spec_of(found, name, name, str(path))


def _module(path: Path) -> ModuleType:
    """Import a file, under a module name that no library has. Raises PluginError.

    The file can import its neighbours. Its folder comes last on the path, so that no neighbour replaces a library.
    """
    name = "clientlab_user" + re.sub(r"\W", "_", str(path))
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise PluginError(f"there is no file {path}; write the path of a Python file, and :CLASS behind it")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        with _as_plugin_error(f"{path} can't be imported", path):
            spec.loader.exec_module(module)
    except PluginError:
        del sys.modules[name]
        raise
    return module


@contextlib.contextmanager
def _as_plugin_error(what: str, path: Path | None = None) -> Iterator[None]:
    """Turn any exception of a plug-in's code into a PluginError of two lines: what and where, then the exception."""
    try:
        yield
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        line = line_of(error, path) if path else None
        where = f", line {line}" if line else ""
        raise PluginError(f"{what}{where}\n{type(error).__name__}: {error}") from error


def line_of(error: BaseException, path: Path) -> int | None:
    """Return the innermost line of a file in an error's traceback, or None if the file is not in it."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def _client_of_function(name: str, function: Callable[[str], Any]) -> type:
    """Return a client class that calls the function with a URL. Raises PluginError for a function that takes none."""
    from clientlab.clients.function_client import AsyncFunctionClient, FunctionClient  # noqa: PLC0415 - it imports ssl

    _check_arguments(function, "url")
    awaited = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
    description = inspect.getdoc(function) or f"the function {name}"
    attributes = {"function": staticmethod(function), "policy": getattr(function, "policy", "pool")}
    return type(name, (AsyncFunctionClient if awaited else FunctionClient,), {**attributes, "__doc__": description})


def _spec_of(cls: Any, name: str, import_path: str, distribution: str) -> ClientSpec | ExecutorSpec:
    """Return the spec of a class. Raises PluginError if it is neither a client nor an executor."""

    def has(flag: str, *, default: bool = False) -> bool:
        return bool(getattr(cls, flag, default))

    description = (inspect.getdoc(cls) or cls.__name__).splitlines()[0]
    methods = {method for method in ("open", "send", "run", "close") if callable(getattr(cls, method, None))}
    if methods >= {"open", "send", "close"}:
        _check_arguments(cls, "budget", "opened")
        policy, http = _one_of(cls, "policy", "pool", get_args(Policy)), _one_of(cls, "http", "1.1", ("1.1", "2"))
        kind: ClientKind = "asyncio" if inspect.iscoroutinefunction(cls.send) else "blocking"
        spec = ClientSpec(name, import_path, distribution, policy, description, kind, http)
        return replace(spec, native=has("native"), url_only=has("url_only"))
    if methods >= {"open", "run", "close"}:
        _check_arguments(cls, "context")
        needs = _one_of(cls, "needs", "blocking", get_args(ClientKind))
        return ExecutorSpec(
            name,
            import_path,
            description,
            needs,
            needs_count=has("needs_count"),
            concurrent=has("concurrent", default=True),
            unbounded=has("unbounded"),
            threads=has("threads"),
            clock_first=has("clock_first"),
            distribution=distribution,
        )
    raise PluginError(f"{_place_of(cls)}\na client has the methods open, send, close; an executor open, run, close")


def _one_of(cls: Any, attribute: str, default: str, known: tuple[Any, ...]) -> Any:
    value = getattr(cls, attribute, default)
    if value not in known:
        raise PluginError(f"{_place_of(cls)}\n{attribute} is {value!r}; it must be one of {', '.join(known)}")
    return value


def _check_arguments(code: Any, *names: str) -> None:
    """Raise PluginError if a class or a function cannot be called with these arguments."""
    try:
        inspect.signature(code).bind(*names)
    except TypeError as error:
        message = f"it is called with {' and '.join(names)} ({error}); write it with ({', '.join(names)})"
        raise PluginError(f"{_place_of(code)}\n{message}") from error
    except ValueError:  # code in C without a signature
        pass


def _place_of(code: Any) -> str:
    """Return a class or a function with its file and line."""
    name = getattr(code, "__name__", type(code).__name__)
    try:
        return f"{inspect.getsourcefile(code)}, line {inspect.getsourcelines(code)[1]}: {name}"
    except (OSError, TypeError):  # the source is not available
        return name
