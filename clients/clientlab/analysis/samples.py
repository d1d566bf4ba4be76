"""Reading sample logs: all of a finished trial, or how far one is that runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from clientlab.sample import ERROR_CODES, HEADER, MAGIC, RECORD_FIELDS, RECORD_SIZE, RECORDS_FILE, error_names

RECORD = np.dtype(list(RECORD_FIELDS))
Records = npt.NDArray[np.void]

_BLOCK = 4096  # records


@dataclass(frozen=True)
class Samples:
    """The samples of one trial.

    `records`: one a finished request, in the order of their start, and `numbers` which requests they
    are. `errors`: kind → how many; `examples`: kind → the first message; `kinds`: a record's code → kind.
    """

    records: Records
    numbers: npt.NDArray[np.int64]
    errors: dict[str, int]
    examples: dict[str, str]
    kinds: dict[int, str]


def read(folder: Path, began: float = 0.0) -> Samples:
    """All samples of a trial that began at or after `began` (monotonic clock): the warm-up is before it."""
    first, records = _read_file(folder / RECORDS_FILE)
    places = np.flatnonzero((records["done"] == 1) & (records["start"] >= began))
    places = places[np.argsort(records["start"][places], kind="stable")]
    records = records[places]
    names = {code: kind for kind, code in ERROR_CODES.items()}
    named = error_names(folder)
    names |= {code: kind for code, (kind, _) in named.items()}
    codes, counts = np.unique(records["error"][records["error"] > 0], return_counts=True)
    errors = {names[code]: count for code, count in zip(codes.tolist(), counts.tolist(), strict=True)}
    examples = {kind: example for kind, example in named.values() if kind in errors}
    return Samples(records, places + first, errors, examples, names)


class Tail:
    """Looks at a growing log again and again, at each record only until it is done."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / RECORDS_FILE
        self._settled = 0  # all places before this one are done

    def finished(self) -> int:
        """How many requests have finished so far."""
        if not self._path.exists():
            return 0
        ahead, unbroken = 0, True
        with self._path.open("rb") as log:
            log.seek(HEADER.size + self._settled * RECORD_SIZE)
            while block := log.read(_BLOCK * RECORD_SIZE):
                done = np.frombuffer(block, RECORD, len(block) // RECORD_SIZE)["done"] == 1
                leading = _leading(done) if unbroken else 0
                self._settled += leading
                ahead += int(done.sum()) - leading
                unbroken = unbroken and leading == len(done)
                if not done.any():
                    break
        return self._settled + ahead


def _leading(done: npt.NDArray[np.bool_]) -> int:
    return len(done) if done.all() else int(done.argmin())


def _read_file(path: Path) -> tuple[int, Records]:
    """Number of the first place's request, and all places, used or not."""
    if not path.exists():
        return 0, np.empty(0, RECORD)
    content = path.read_bytes()
    magic, first = HEADER.unpack_from(content) if len(content) >= HEADER.size else (b"", 0)
    if magic != MAGIC:
        return 0, np.empty(0, RECORD)
    whole = (len(content) - HEADER.size) // RECORD_SIZE
    return first, np.frombuffer(content, RECORD, whole, HEADER.size)
