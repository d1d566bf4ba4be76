"""ApacheBench as a generator for a length of time. As a strategy, which sends a number of requests, it is a client."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from clientlab.clients.apache_bench import ApacheBench, figure_of
from clientlab.clients.interfaces import Budget
from clientlab.generators.interfaces import GeneratorLoad, LoadReport

_MOST_PER_SECOND = 100_000
"""ab allocates a record for each request that it may send, and sends fewer than this in a second."""


class Ab:
    """`ab` with kept connections, over HTTP/1.0, in one thread."""

    name: ClassVar[str] = "ab"
    install: ClassVar[str] = "apt-get install apache2-utils"
    version: ClassVar[tuple[str, ...]] = ("-V",)
    cores: ClassVar[int | None] = 1

    def refuses(self, load: GeneratorLoad) -> str | None:
        if load.http == "2":
            return "speaks HTTP/1.0 only"
        methods = {"POST", "PUT"} if load.request.body is not None else {load.request.method}
        return None if load.request.method in methods else "sends a body with POST and PUT only"

    def command(self, load: GeneratorLoad, folder: Path) -> list[str]:
        client = ApacheBench(Budget(load.connections, timeout=30.0), lambda: None)
        most = load.seconds * _MOST_PER_SECOND
        program, *words = client.command(load.request, most, load.connections, folder)
        return [program, "-t", str(load.seconds), *words]  # -t sets a number of requests, which -n behind it replaces

    def report(self, printed: str, folder: Path, load: GeneratorLoad) -> LoadReport:  # noqa: ARG002 - all of it is printed
        ended, seconds = int(figure_of(printed, "Complete requests") or 0), figure_of(printed, "Time taken for tests")
        failed = int(figure_of(printed, "Failed requests") or 0) + int(figure_of(printed, "Non-2xx responses") or 0)
        return LoadReport(max(0, ended - failed), failed, float(seconds))
