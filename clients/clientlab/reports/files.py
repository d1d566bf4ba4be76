"""Files that reports are written to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from clientlab.errors import LabError


@dataclass(frozen=True)
class OutputFile:
    """The file of an option: `kind` and `option` name it in messages."""

    kind: str
    option: str
    endings: Sequence[str]

    def check(self, path: Path) -> None:
        """Raise LabError if the path cannot be written. Call it before anything is measured."""
        if path.suffix not in self.endings:
            raise LabError(f"{self.kind} {path}: the name must end with {' or '.join(self.endings)}")
        if not path.parent.is_dir():
            raise LabError(f"{self.kind} {path}: there is no folder {path.parent}; make it, or change {self.option}")

    @contextmanager
    def writing(self, path: Path) -> Iterator[None]:
        """Check the path, and turn errors of the operating system into LabError."""
        self.check(path)
        try:
            yield
        except OSError as error:
            raise LabError(f"{self.kind} {path}: {error.strerror}; name another place with {self.option}") from error


CHART = OutputFile("chart", "--chart", (".png", ".svg"))
PAGE = OutputFile("report", "--html", (".html", ".htm"))
JUNIT = OutputFile("results", "--junit", (".xml",))
