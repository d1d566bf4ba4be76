"""ApacheBench: an external program that sends all requests itself and times them with
its own clock.

Only the percentiles (``-e``) have a resolution of microseconds. It counts failed
requests, but does not name them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from clientlab.clients.client_interface import Budget, ClientSpec, Opened, Quirks
from clientlab.errors import ErrorTable
from clientlab.workload.load import is_warm
from clientlab.workload.parts import BODY_FIELDS
from clientlab.workload.workload import (
    DONE_BY_LAB,
    NUMBER_FIELD,
    Request,
    ToolReport,
    Workload,
    encodes_each,
    first_beyond,
    names_of,
    varies,
)

_BODIES = {"POST": "-p", "PUT": "-u"}
_ABLE = (DONE_BY_LAB | names_of("request") | {"timeout"}) - {
    "rate",
    "stages",
    "parse",
    "expect",
    "call_timeout",
}
_CLOSED = "sends the next request when one has ended"
_REASONS = {
    "rate": _CLOSED,
    "stages": _CLOSED,
    "replay": "sends one request again and again",
    "decode": "decodes no response",
    "parse": "parses no response",
    "read": "keeps no body",
    "elapsed": "has only its own clock",
    "stream": "reads no streams of events",
    "first_byte": "reports no first byte",
    "expect": "names no status",
    "call_timeout": "limits no whole request",
}
"""Field that it is not able to do → why."""

_OUT = "ab.percentiles.csv"
_BODY = "ab.body"
_FAILED = re.compile(r"\(Connect: (\d+), Receive: (\d+), .*Exceptions: (\d+)\)")


@ClientSpec(
    "ab",
    "python",
    "pool",
    kind="program",
    program="ab",
    package="apache2-utils",
    quirks=Quirks(keep_alive_header=True),
)
class ApacheBench:
    """ApacheBench, a load generator and no library: HTTP/1.0 with keep-alive, timed by
    its own clock.
    """

    errors: ClassVar[ErrorTable] = ()
    program = "ab"

    def __init__(
        self,
        budget: Budget,
        opened: Opened,  # noqa: ARG002 - ab counts its connections itself
        *,
        keepalive: bool = True,
    ) -> None:
        self._timeout = math.ceil(budget.timeout)
        self._keepalive = keepalive

    @staticmethod
    def refuses(workload: Workload) -> tuple[str, str] | None:
        """Return the first field that keeps `ab` from running the workload, and the
        reason; None if it can.
        """
        name = first_beyond(workload, _ABLE)
        if name is not None:
            reason = _REASONS.get(name, "cannot do this")
            return name, f"{reason}; leave out `{name}`"
        request = workload.request
        has_body = any(getattr(request, name) is not None for name in BODY_FIELDS)
        one = "sends one request again and again"
        reasons = (
            (
                workload.load.requests is None,
                "duration",
                "counts its requests; set `requests` instead",
            ),
            (NUMBER_FIELD in request.path, "path", f"{one}; leave out {{k}}"),
            (encodes_each(workload), "encode", f"{one}; leave out `encode`"),
            (varies(workload), "delay", f"{one}; write a constant delay"),
            (
                request.upload == "stream",
                "upload",
                "holds the body in memory; leave out `upload`",
            ),
            (
                is_warm(workload),
                "connections",
                "opens its connections in its own time; write cold",
            ),
            (
                has_body and request.method not in _BODIES,
                "method",
                "sends a body with POST and PUT only",
            ),
        )
        return next(
            ((field, reason) for applies, field, reason in reasons if applies), None
        )

    def command(
        self, request: Request, requests: int, in_flight: int, folder: Path
    ) -> list[str]:
        """Return the command line that sends `request` this many times.

        `folder` holds body and results.
        """
        words = [
            self.program,
            "-q",
            "-d",
            "-l",
            "-r",
            "-n",
            str(requests),
            "-c",
            str(min(in_flight, requests)),
        ]
        words += [
            "-s",
            str(self._timeout),
            "-e",
            str(folder / _OUT),
            *(["-k"] if self._keepalive else []),
        ]
        headers = dict(request.headers)
        if request.body is not None:
            (folder / _BODY).write_bytes(request.body)
            kind = next(
                headers.pop(name)
                for name in list(headers)
                if name.lower() == "content-type"
            )
            words += [_BODIES[request.method], str(folder / _BODY), "-T", kind]
        elif request.method == "HEAD":
            words += ["-i"]
        elif request.method != "GET":
            words += ["-m", request.method]
        for name, value in headers.items():
            if (
                request.body is None or name.lower() != "content-length"
            ):  # ab writes the length of a body itself
                words += ["-H", f"{name}: {value}"]
        return [*words, request.url]

    def report(
        self, printed: str, folder: Path, requests: int, in_flight: int
    ) -> ToolReport:
        """Return the figures that `ab` printed and wrote into `folder`.

        Raises ValueError if it did not finish.
        """
        if (done := _count(printed, "Complete requests")) != requests:
            raise ValueError(f"ab completed {done} of {requests} requests")
        kept = _count(printed, "Keep-Alive requests")
        # One connection per request in flight, and one more for each response that
        # closed its connection.
        opened = min(requests, min(in_flight, requests) + requests - kept)
        # Lengths may differ (``-l``). ab does not say which status a non-2xx response
        # had.
        errors = Counter({"other:not-2xx": _count(printed, "Non-2xx responses")})
        if found := _FAILED.search(printed):
            errors["connect"] += int(found[1])
            errors["reset"] += int(found[2]) + int(found[3])
        return ToolReport(
            seconds=requests / _number(printed, "Requests per second"),
            times=spread(
                percentiles((folder / _OUT).read_text(encoding="ascii")), requests
            ),
            bytes_received=_count(printed, "HTML transferred"),
            connections=opened,
            kept_alive=kept,
            errors={kind: count for kind, count in errors.items() if count},
        )


def percentiles(table: str) -> list[float]:
    """Return the seconds of the percentiles 0 to 100, from the file that ``-e`` writes.

    With few requests, ab reads beyond the end of its list. No value here is larger than
    the last one.
    """
    milliseconds = [float(line.partition(",")[2]) for line in table.splitlines()[1:]]
    return sorted(min(value, milliseconds[-1]) / 1000 for value in milliseconds)


def spread(hundredths: Sequence[float], requests: int) -> list[float]:
    """Return a time for each request in ascending order, interpolated linearly between
    the percentiles.
    """
    last = len(hundredths) - 1
    times = []
    for index in range(requests):
        at = index * last / max(1, requests - 1)
        below = min(int(at), last - 1)
        times.append(
            hundredths[below]
            + (at - below) * (hundredths[below + 1] - hundredths[below])
        )
    return times


def _number(printed: str, name: str) -> float:
    """Return a figure that `ab` printed; 0 if it left the line out, as it does for some
    counts of 0.
    """
    found = re.search(rf"^{name}:\s+([\d.]+)", printed, re.MULTILINE)
    return float(found[1]) if found else 0.0


def _count(printed: str, name: str) -> int:
    return int(_number(printed, name))
