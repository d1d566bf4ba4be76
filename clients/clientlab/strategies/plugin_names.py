"""The names of a user's classes: ``path/to/file.py:Class``. Nothing is loaded."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container
from pathlib import Path

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
