"""Classes of a user's file: ``path/to/file.py:name``. What goes wrong in it is told with file and line."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from clientlab.errors import PluginError

_PLACE = re.compile(r"(?P<file>.+\.py):(?P<name>\w+)")


def is_place(name: str) -> bool:
    """Whether a name is of the shape ``path/to/file.py:name``."""
    return _PLACE.fullmatch(name) is not None


def absolute(name: str) -> str:
    """The same with the file's whole path, which a process in another folder finds too; others as they are."""
    found = _PLACE.fullmatch(name)
    return name if found is None else f"{Path(found['file']).resolve()}:{found['name']}"


def file_of(place: str) -> Path | None:
    """The user's file of a place; None for the place in a module."""
    found = _PLACE.fullmatch(place)
    return None if found is None else Path(found["file"])


def hash_of(path: Path) -> str:
    """What a run notes of a user's file, in place of a version."""
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def load(place: str) -> type:
    """The class at ``path/to/file.py:name``. Raises PluginError with file and line of what went wrong."""
    path, name = file_of(place), place.rpartition(":")[2]
    if path is None:
        raise ValueError(place)
    module = _module(path)
    found = getattr(module, name, None)
    if not inspect.isclass(found):
        own = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        classes = [key for key in own if inspect.isclass(getattr(module, key))]
        raise PluginError(f"{path} has no class {name}; it has {', '.join(classes) or 'none'}")
    return found


@cache
def _module(path: Path) -> ModuleType:
    """The file as a module of its own, under a name that no library has."""
    if not path.is_file():
        raise PluginError(f"there is no file {path}; write the path of a Python file, and :CLASS behind it")
    name = f"clientlab_user_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path}: Python can't import it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with telling(f"{path} can't be imported", path):
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def telling(what: str, path: Path | None = None) -> Iterator[None]:
    """Whatever goes wrong in code that is not the lab's is told in two lines: where, and what."""
    try:
        yield
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        line = line_of(error, path)
        where = f", line {line}" if line else ""
        raise PluginError(f"{what}{where}\n{type(error).__name__}: {error}") from error


def line_of(error: BaseException, path: Path | None) -> int | None:
    """The line of the file that an error came out of, the innermost; None where it has no part in it."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None
