"""Reports of runs: their sections, charts and formats, and the files that they are written to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clientlab.errors import LabError


@dataclass(frozen=True)
class OutputFile:
    """A file that an option writes. Messages name its `kind` and the `option`."""

    kind: str
    option: str
    endings: Sequence[str]

    def check(self, path: Path) -> None:
        """Raise LabError if the path cannot be written. Call this before measuring anything."""
        if path.suffix not in self.endings:
            raise LabError(f"{self.kind} {path}: the name must end with {' or '.join(self.endings)}")
        if not path.parent.is_dir():
            raise LabError(f"{self.kind} {path}: there is no folder {path.parent}; make it, or change {self.option}")


CHART = OutputFile("chart", "--chart", (".png", ".svg"))
PAGE = OutputFile("report", "--html", (".html", ".htm"))
JUNIT = OutputFile("results", "--junit", (".xml",))
