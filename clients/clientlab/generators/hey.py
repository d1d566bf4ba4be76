"""hey: goroutines, one for each connection. It sends a `User-Agent` of its own.

Its summary is text; its CSV has a row for each request.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from clientlab.generators.interfaces import GeneratorLoad, LoadReport, body_file, header_words

_TOTAL = re.compile(r"^\s*Total:\s+([\d.]+) secs", re.MULTILINE)
_STATUS = re.compile(r"^\s*\[(\d{3})\]\s+(\d+) responses", re.MULTILINE)
_ERROR = re.compile(r"^\s*\[(\d+)\]\s", re.MULTILINE)
_REFUSED = 400


class Hey:
    """`hey` on all cores, as it is by default."""

    name: ClassVar[str] = "hey"
    install: ClassVar[str] = "apt-get install hey"
    version: ClassVar[tuple[str, ...]] = ()
    cores: ClassVar[int | None] = None

    def refuses(self, load: GeneratorLoad) -> str | None:
        return "is measured over HTTP/1.1 only" if load.http == "2" else None

    def command(self, load: GeneratorLoad, folder: Path) -> list[str]:
        words = ["hey", "-z", f"{load.seconds}s", "-c", str(load.connections), "-m", load.request.method]
        words += ["-disable-compression", "-disable-redirects"]
        if path := body_file(load.request, folder):
            words += ["-D", str(path)]
        return [*words, *header_words(load.request), load.request.url]

    def report(self, printed: str, folder: Path, load: GeneratorLoad) -> LoadReport:  # noqa: ARG002 - all of it is printed
        total = _TOTAL.search(printed)
        if total is None:
            raise ValueError("its output has no total, so no request got a response")
        statuses = [(int(status), int(count)) for status, count in _STATUS.findall(printed)]
        refused = sum(count for status, count in statuses if status >= _REFUSED)
        lost = sum(map(int, _ERROR.findall(printed.partition("Error distribution:")[2])))
        return LoadReport(sum(count for _, count in statuses) - refused, refused + lost, float(total[1]))
