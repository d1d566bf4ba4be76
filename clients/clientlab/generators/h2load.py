"""h2load of nghttp2: an event loop in C, for HTTP/2 and HTTP/1.1."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from clientlab.generators.interfaces import GeneratorLoad, LoadReport, body_file, header_words

_FINISHED = re.compile(r"^finished in ([\d.]+)(us|ms|s|m), ([\d.]+) req/s", re.MULTILINE)
_REQUESTS = re.compile(r"(\d+) done, (\d+) succeeded, (\d+) failed")
_STATUSES = re.compile(r"^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", re.MULTILINE)


class H2load:
    """`h2load` with one thread, so that it takes one core at most, and one stream on each connection."""

    name: ClassVar[str] = "h2load"
    install: ClassVar[str] = "apt-get install nghttp2-client"
    version: ClassVar[tuple[str, ...]] = ("--version",)
    cores: ClassVar[int | None] = 1

    def refuses(self, load: GeneratorLoad) -> str | None:
        method = "GET" if load.request.body is None else "POST"
        return None if load.request.method == method else "sends GET, and POST with a body, only"

    def command(self, load: GeneratorLoad, folder: Path) -> list[str]:
        words = ["h2load", "-D", str(load.seconds), "-c", str(load.connections), "-t", "1", "-m", "1"]
        words += ["--h1"] if load.http == "1.1" else []
        if path := body_file(load.request, folder):
            words += ["-d", str(path)]
        return [*words, *header_words(load.request), load.request.url]

    def report(self, printed: str, folder: Path, load: GeneratorLoad) -> LoadReport:  # noqa: ARG002 - all of it is printed
        finished, requests = _FINISHED.search(printed), _REQUESTS.search(printed)
        statuses = _STATUSES.search(printed)
        if finished is None or requests is None or statuses is None:
            raise ValueError("its output has no number of requests")
        *good, refused, broken = map(int, statuses.groups())
        failed = max(refused + broken, int(requests[3]))  # the latter are those without a response as well
        rate = float(finished[3])
        return LoadReport(sum(good), failed, int(requests[1]) / rate if rate else float(load.seconds))
