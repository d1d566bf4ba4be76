"""ApacheBench: a program, which sends all requests by itself and measures them by its own clock.

What it prints has three digits of a second. Its ``-g`` file has each request, in whole milliseconds; its ``-e`` file
has the hundredths of their distribution in microseconds, and is what is read here. It tells of failures how many
they were, and not which.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from clientlab.clients.shape import Budget, Opened
from clientlab.errors import ErrorTable
from clientlab.tally import Tally
from clientlab.workload import Request, Workload, varies

_BODIES = {"POST": "-p", "PUT": "-u"}
_OUT = "ab.percentiles.csv"
_BODY = "ab.body"
_KINDS = {"Connect": "connect", "Receive": "reset", "Exceptions": "reset"}
_FAILED = re.compile(r"\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)")


class ApacheBench:
    """`ab`, with keep-alive (``-k``) unless a setting says otherwise."""

    errors: ClassVar[ErrorTable] = ()
    program = "ab"

    def __init__(self, budget: Budget, opened: Opened, *, keepalive: bool = True) -> None:  # noqa: ARG002 - it counts itself
        self._timeout = math.ceil(budget.timeout)
        self._keepalive = keepalive

    @staticmethod
    def refuses(workload: Workload) -> str | None:
        """What the workload asks for that `ab` can't do, and what to do; None where it can do all of it."""
        for asked, reason in (
            (workload.requests is None, "counts its requests: give it a number with -n"),
            (varies(workload), "sends one request again and again: leave out {k}, random delays and --encode each"),
            (workload.parse, "parses no answer: leave out --parse"),
            (workload.read == "chunks", "keeps no body: leave out --read chunks"),
            (workload.upload == "stream", "holds the body in memory: leave out --upload stream"),
            (workload.elapsed, "has no other clock than its own: leave out --elapsed"),
            (workload.connections == "warm", "opens its connections inside its own time: leave out --connections warm"),
            (_has_body(workload) and workload.method not in _BODIES, "sends a body with POST and PUT only"),
        ):
            if asked:
                return reason
        return None

    def command(self, request: Request, requests: int, in_flight: int, folder: Path) -> list[str]:
        """The words that send `request` that many times; `folder` takes its body and what `ab` finds."""
        words = [self.program, "-q", "-d", "-l", "-r", "-n", str(requests), "-c", str(min(in_flight, requests))]
        words += ["-s", str(self._timeout), "-e", str(folder / _OUT), *(["-k"] if self._keepalive else [])]
        headers = dict(request.headers)
        if request.body is not None:
            (folder / _BODY).write_bytes(request.body)
            kind = next((headers.pop(name) for name in list(headers) if name.lower() == "content-type"), "text/plain")
            words += [_BODIES[request.method], str(folder / _BODY), "-T", kind]
        elif request.method == "HEAD":
            words += ["-i"]
        elif request.method != "GET":
            words += ["-m", request.method]
        for name, value in headers.items():
            if name.lower() != "content-length":  # which it writes itself
                words += ["-H", f"{name}: {value}"]
        return [*words, request.url]

    def tally(self, printed: str, folder: Path, requests: int, in_flight: int) -> Tally:
        """What it printed, and wrote in `folder`, as figures. Raises ValueError where it did not finish."""
        if (done := _count(printed, "Complete requests")) != requests:
            raise ValueError(f"ab completed {done} of {requests} requests")
        kept = _count(printed, "Keep-Alive requests")
        # Each in flight opens one; each answer that closes it makes another necessary while there is more to send.
        opened = min(requests, min(in_flight, requests) + requests - kept)
        return Tally(
            seconds=requests / float(_figure(printed, "Requests per second")),
            times=spread(percentiles((folder / _OUT).read_text(encoding="ascii")), requests),
            bytes_received=_count(printed, "HTML transferred"),
            connections=opened,
            kept_alive=kept,
            errors=_errors(printed),
        )


def percentiles(table: str) -> list[float]:
    """Seconds of the hundredths from the least to the largest, of the file that ``-e`` writes.

    Of few requests it may read one place too far: none is larger than the largest.
    """
    milliseconds = [float(line.partition(",")[2]) for line in table.splitlines()[1:]]
    return sorted(min(value, milliseconds[-1]) / 1000 for value in milliseconds)


def spread(hundredths: Sequence[float], requests: int) -> list[float]:
    """A time for each request, from the least to the largest: on the straight lines between the hundredths."""
    last = len(hundredths) - 1
    times = []
    for place in range(requests):
        at = place * last / max(1, requests - 1)
        below = min(int(at), last - 1)
        times.append(hundredths[below] + (at - below) * (hundredths[below + 1] - hundredths[below]))
    return times


def _has_body(workload: Workload) -> bool:
    return any(part is not None for part in (workload.body, workload.payload_size, workload.upload_size))


def _errors(printed: str) -> dict[str, int]:
    """Kind → how many. Lengths may differ (``-l``); a status that is none of 2xx may be a redirect, and is not told."""
    errors: dict[str, int] = {}
    if found := _FAILED.search(printed):
        for name, count in zip(("Connect", "Receive", "Length", "Exceptions"), map(int, found.groups()), strict=True):
            if count and name in _KINDS:
                errors[_KINDS[name]] = errors.get(_KINDS[name], 0) + count
    if other := _count(printed, "Non-2xx responses"):
        errors["other:not-2xx"] = other
    return errors


def _count(printed: str, name: str) -> int:
    """A whole number; 0 where `ab` leaves the line out, as it does with some that are 0."""
    return int(_figure(printed, name) or 0)


def _figure(printed: str, name: str) -> str:
    found = re.search(rf"^{name}:\s+([\d.]+)", printed, re.MULTILINE)
    return found[1] if found else ""
