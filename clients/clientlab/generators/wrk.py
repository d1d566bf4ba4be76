"""wrk: event loops in C. Without a script in Lua, it sends GET only."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from clientlab.generators.interfaces import GeneratorLoad, LoadReport, header_words

_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_DONE = re.compile(r"^\s*(\d+) requests in ([\d.]+)(us|ms|s|m),", re.MULTILINE)
_RATE = re.compile(r"^Requests/sec:\s+([\d.]+)", re.MULTILINE)
_ERRORS = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")
_STATUSES = re.compile(r"Non-2xx or 3xx responses: (\d+)")


class Wrk:
    """`wrk` with one thread, so that it takes one core at most."""

    name: ClassVar[str] = "wrk"
    install: ClassVar[str] = "apt-get install wrk"
    version: ClassVar[tuple[str, ...]] = ("-v",)
    cores: ClassVar[int | None] = 1

    def refuses(self, load: GeneratorLoad) -> str | None:
        if load.http == "2":
            return "speaks HTTP/1.1 only"
        return None if load.request.method == "GET" and load.request.body is None else "sends GET only"

    def command(self, load: GeneratorLoad, folder: Path) -> list[str]:  # noqa: ARG002 - it writes no file
        words = ["wrk", "-t1", f"-c{load.connections}", f"-d{load.seconds}s"]
        return [*words, *header_words(load.request), load.request.url]

    def report(self, printed: str, folder: Path, load: GeneratorLoad) -> LoadReport:  # noqa: ARG002 - as above
        done, rate = _DONE.search(printed), _RATE.search(printed)
        if done is None or rate is None:
            raise ValueError("its output has no number of requests")
        responses, socket_errors = int(done[1]), _ERRORS.search(printed)
        lost = sum(map(int, socket_errors.groups())) if socket_errors else 0
        refused = int(found[1]) if (found := _STATUSES.search(printed)) else 0
        # The printed seconds have two digits behind the point; the rate has more.
        seconds = responses / float(rate[1]) if responses else float(done[2]) * _UNITS[done[3]]
        return LoadReport(responses - refused, refused + lost, seconds)
