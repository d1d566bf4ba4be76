"""Reading sample logs: all of a finished trial, or what is new of one that runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from clientlab.sample import ERROR_CODES, HEADER, MAGIC, RECORD_FIELDS, RECORD_SIZE

RECORD = np.dtype(list(RECORD_FIELDS))

Records = npt.NDArray[np.void]


@dataclass(frozen=True)
class Samples:
    """The samples of one trial.

    `records`: one a finished request, in the order of their start. `errors`: kind → how many;
    `examples`: kind → the first message. `unfinished`: requests that began and never ended.
    """

    records: Records
    errors: dict[str, int]
    examples: dict[str, str]
    unfinished: int


def read(folder: Path, began: float = 0.0) -> Samples:
    """All samples of a trial that began at or after `began` (monotonic clock): the warm-up is before it."""
    errors: dict[str, int] = {}
    examples: dict[str, str] = {}
    parts: list[Records] = []
    unfinished = 0
    for path in sorted(folder.glob("*.samples")):
        records = _records(path)
        records = records[records["start"] >= max(began, np.nextafter(0, 1))]
        done = records["done"] == 1
        unfinished += int((~done).sum())
        parts.append(records[done])
        _count_errors(path, parts[-1], errors, examples)
    whole = np.concatenate(parts) if parts else np.empty(0, RECORD)
    return Samples(whole[np.argsort(whole["start"], kind="stable")], errors, examples, unfinished)


class Tail:
    """Reads a growing folder of logs again and again, each record once.

    A record still in flight holds back those behind it of the same process: they are looked at again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self._ahead: dict[Path, int] = {}

    def finished(self) -> int:
        """How many requests have finished so far, over all processes."""
        for path in self._folder.glob("*.samples"):
            self._follow(path)
        return sum(self._read.values()) + sum(self._ahead.values())

    def _follow(self, path: Path) -> None:
        settled = self._read.get(path, 0)
        done = _records(path, settled)["done"] == 1
        gap = int(done.argmin()) if not done.all() else len(done)
        self._read[path] = settled + gap
        self._ahead[path] = int(done[gap:].sum())


def _records(path: Path, skip: int = 0) -> Records:
    with path.open("rb") as log:
        if not log.read(len(MAGIC)).startswith(MAGIC):
            return np.empty(0, RECORD)
        log.seek(HEADER.size + skip * RECORD_SIZE)
        return np.frombuffer(log.read(), RECORD)


def _count_errors(path: Path, records: Records, errors: dict[str, int], examples: dict[str, str]) -> None:
    codes, counts = np.unique(records["error"], return_counts=True)
    names = {code: kind for kind, code in ERROR_CODES.items()}
    companion = path.with_suffix(".errors")
    for line in companion.read_text(encoding="utf-8").splitlines() if companion.exists() else ():
        row = json.loads(line)
        names.setdefault(row["code"], row["kind"])
        examples.setdefault(row["kind"], row["example"])
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        if code:
            kind = names.get(code, "other")
            errors[kind] = errors.get(kind, 0) + count
