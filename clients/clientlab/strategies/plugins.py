"""Load clients and executors that are not listed: classes of a user's file, and entry points of installed packages.

This is the only module of the lab that runs a user's files and entry points. It gets the names of the command line, and
those of an experiment's file that the command line names; never those of a run file.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from clientlab import settings
from clientlab.errors import PluginError
from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.executors import EXECUTORS
from clientlab.strategies.known import ADMITTED, Installed, file_of, is_of_file, pair_of
from clientlab.strategies.pairs import STRATEGIES
from clientlab.strategies.specs import ClientSpec, ExecutorSpec, client_of, executor_of, is_executor

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "clientlab.strategies"


def admit(names: Iterable[str]) -> None:
    """Load the code that these names hold, and let `find` know it in this process.

    A name is that of a strategy, a client, an executor, or the path of a Python file. Listed ones need no code. Errors
    are kept: `find` raises them where the name is used.
    """
    for name in names:
        plain, _ = settings.split(name)
        if plain not in STRATEGIES:
            for part in _parts(plain):
                _admit(part)


def installed() -> Installed:
    """All entry points of the group, loaded once. `find` knows them from then on."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - 15 ms, which a listed strategy's trial does not need

    if ADMITTED.packages is None:
        found = ADMITTED.packages = Installed()
        for point in entry_points(group=GROUP):
            try:
                _add(found, point)
            except PluginError as error:
                found.faults[point.name] = error
    return ADMITTED.packages


def line_of(error: BaseException, path: Path) -> int | None:
    """The innermost line of the file in the error's traceback; None if the file is not in it."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def _parts(name: str) -> tuple[str, str]:
    """Client and executor, or the path of a file."""
    if name.endswith(".py"):
        return name, ""
    before, at, _ = name.partition("@")
    of_package = bool(at) and before not in CLIENTS and not is_of_file(before) and "/" not in before
    return pair_of(name, installed().clients if of_package else CLIENTS)


def _admit(part: str) -> None:
    """A client or an executor, or the path of a file."""
    if not part or part in CLIENTS or part in EXECUTORS:
        return
    path = Path(part) if part.endswith(".py") else file_of(part)
    if path is None:
        installed()
        return
    path = path.resolve()
    if path not in ADMITTED.files:
        try:
            ADMITTED.files[path] = _module(path)
        except PluginError as error:
            ADMITTED.files[path] = error


def _add(found: Installed, point: EntryPoint) -> None:
    """Load one entry point and keep its object. Raises PluginError."""
    source = point.dist.name if point.dist else point.module
    with _as_plugin_error(f"strategy {point.name!r}: {point.value} of {source} can't be loaded"):
        loaded = point.load()
    if inspect.isclass(loaded):
        make = executor_of if is_executor(loaded) else client_of
        loaded = make(point.name, point.value, loaded, source)
    name = getattr(loaded, "name", point.name)
    if name in CLIENTS or name in EXECUTORS or name in found.sources:
        raise PluginError(f"strategy {name!r} of {source}: the name is taken; the package is to choose another")
    found.sources[name] = source
    if isinstance(loaded, ClientSpec):
        found.clients[name] = loaded
    elif isinstance(loaded, ExecutorSpec):
        found.executors[name] = loaded
    else:
        found.others[name] = loaded


def _module(path: Path) -> ModuleType:
    """The imported file, under a module name that no library has. Raises PluginError.

    The file imports its neighbours: its folder is the last one of the path, so that no neighbour takes the place of a
    library or of a module of Python.
    """
    if not path.is_file():
        raise PluginError(f"there is no file {path}; write the path of a Python file, and :CLASS behind it")
    name = f"clientlab_user_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path}: Python can't import it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
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
