"""oha: asyncio of Rust (tokio, hyper). Its report is a JSON document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

from clientlab.generators.interfaces import GeneratorLoad, LoadReport, body_file, header_words

_REPORT = "oha.json"
_STOPPED = "aborted due to deadline"
_REFUSED = 400


class Oha:
    """`oha` on all cores, as it is by default."""

    name: ClassVar[str] = "oha"
    install: ClassVar[str] = "cargo install oha"
    version: ClassVar[tuple[str, ...]] = ("--version",)
    cores: ClassVar[int | None] = None

    def refuses(self, load: GeneratorLoad) -> str | None:  # noqa: ARG002 - it sends every load
        return None

    def command(self, load: GeneratorLoad, folder: Path) -> list[str]:
        words = ["oha", "--no-tui", "-z", f"{load.seconds}s", "-c", str(load.connections), "-m", load.request.method]
        words += ["--output-format", "json", "--output", str(folder / _REPORT), "--redirect", "0"]
        words += ["--disable-compression", "--http-version", load.http]
        if load.ca_file is not None:
            words += ["--cacert", load.ca_file]
        if path := body_file(load.request, folder):
            words += ["-D", str(path)]
        return [*words, *header_words(load.request), load.request.url]

    def report(self, printed: str, folder: Path, load: GeneratorLoad) -> LoadReport:  # noqa: ARG002 - its report is a file
        found = json.loads((folder / _REPORT).read_text(encoding="utf-8"))
        statuses = {int(status): count for status, count in found["statusCodeDistribution"].items()}
        refused = sum(count for status, count in statuses.items() if status >= _REFUSED)
        lost = sum(count for kind, count in found["errorDistribution"].items() if kind != _STOPPED)
        return LoadReport(sum(statuses.values()) - refused, refused + lost, found["summary"]["total"])
