"""Compares what a client reports with what the upstream received and sent.

Its times are compared with the delays that it asked for.

A user's function may drop the query, skip the body or answer from a cache. It would win
every comparison. The upstream counts requests, statuses, bytes of bodies, and a hash of
each request's method and target, so the measured process has nothing to do for these
checks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import unquote
from zlib import crc32

from clientlab import units
from clientlab.observing.samples import Samples
from clientlab.results.server_counters import ServerUse
from clientlab.results.trial import PlannedTrial
from clientlab.workload.requests import body_size, requests_of
from clientlab.workload.workload import Request, Workload, delay_of, varies

# Seconds, and share of a delay, by which a request may be shorter than its delay: two
# machines' clocks differ.
_CLOCK_STEP = 1e-3
_CLOCK_DRIFT = 0.01
_COUNTED = (
    "requests",
    "failed_requests",
    "response_body_bytes",
    "request_body_bytes",
    "request_digest",
)


def hash_request(method: str, target: str) -> int:
    """Return the upstream's hash of a request (mockupstream.metrics)."""
    decoded = unquote(target) if "%" in target else target
    return crc32(f"{method} {decoded}".encode(errors="surrogateescape")) & 0xFFFFF


class _Report(NamedTuple):
    """How many requests a client reports."""

    calls: int

    answered: int
    """By the upstream: a 5xx response may be the proxy's own."""

    failed: int
    """Answered by the upstream with an error status."""

    @property
    def unknown(self) -> int:
        """Requests without a response, which may have reached the upstream or not."""
        return self.calls - self.answered


def find_difference(
    sent: Samples, planned: PlannedTrial, workload: Workload, use: ServerUse
) -> str | None:
    """Return how the client's report differs from what the upstream counted.

    Return None if both agree. `sent`: the requests that were sent. `use`: the growth of
    the upstream's counters during the trial.
    """
    if None in {getattr(use, name) for name in _COUNTED}:
        return None
    status = sent.records["status"]
    is_answered = (sent.records["error"] == 0) | (status > 0)
    of_upstream = is_answered & ((status < 500) | (planned.route == "direct"))
    failed = of_upstream & (status >= 400)
    report = _Report(len(status), int(of_upstream.sum()), int(failed.sum()))
    problem = _compare_counts(report, use)
    has_retried = (use.requests or 0) > report.calls
    if problem or use.in_flight or has_retried:
        return problem
    # Encoding each body anew would make all requests look different.
    request = replace(workload.request, encode="once")
    workload = replace(workload, request=request)
    is_complete = not report.unknown and (use.requests or 0) >= report.calls
    if varies(workload) and not is_complete:
        return None  # nobody knows which of the requests the upstream got
    # Libraries that parse streams encode and hand over other bytes.
    has_all_bytes = not report.unknown and workload.stream is None
    problem = _compare_responses(sent, workload, use, has_all_bytes=has_all_bytes)
    if problem:
        return problem
    delay_shares: dict[int, float] = {}
    if sent.delay_shares is not None:
        shares = sent.delay_shares.tolist()
        delay_shares = dict(zip(sent.numbers.tolist(), shares, strict=True))
    request_of = requests_of(
        workload, "", share_of=lambda number: delay_shares.get(number, 1.0)
    )
    if has_all_bytes:
        problem = _compare_request_bodies(sent, workload, request_of, use)
    different = sent.numbers.tolist()
    if not varies(workload):
        different = [number for number, share in delay_shares.items() if share < 1.0]
    if problem or (different and not is_complete):
        return problem
    return _compare_targets(different, request_of, use)


def _compare_counts(report: _Report, use: ServerUse) -> str | None:
    got = use.requests or 0
    if got < report.answered:
        return (
            f"the client reports {report.answered:,} answered requests, and the"
            f" upstream got {got:,}: send one with each call, keep no answers, and let"
            " time-outs raise"
        )
    # Requests of an earlier trial or another program, which are answered during this
    # one. If they fill all slots, nobody knows how many wait for a thread.
    others = use.in_flight or 0
    if others and use.slots is not None and others >= use.slots:
        return None
    # A client that retries sends again what failed.
    again = max(0, got - report.calls - others)
    failed = use.failed_requests or 0
    if again > failed:
        return (
            f"the upstream got {got:,} requests from {report.calls:,} calls, and"
            f" answered {failed:,} with an error status: the client sends more than it"
            " is asked for, or another program called the upstream"
        )
    if again:
        return None
    most_failed = report.failed + report.unknown
    if others or report.failed <= failed <= most_failed:
        return None
    return (
        f"the upstream answered {failed:,} requests with an error status,"
        f" and the client reports {report.failed:,}: return the status of the response"
    )


def _compare_responses(
    sent: Samples, workload: Workload, use: ServerUse, *, has_all_bytes: bool
) -> str | None:
    wrote = use.response_body_bytes or 0
    read = int(sent.records["bytes"].sum())
    least = 0.0
    if has_all_bytes:
        least = wrote
    elif workload.stream is None:
        # A failed request may have received a part of its body. As its size is not
        # known, successful requests must have read half of their share.
        succeeded = int((sent.records["error"] == 0).sum())
        least = wrote * succeeded / max(1, len(sent.records)) / 2
    if least <= read and (read <= wrote or not has_all_bytes):
        return None
    return (
        f"the upstream sent {wrote:,} bytes of bodies, and the client reports {read:,}:"
        " read the whole body of each response, and return it as it came"
    )


def _compare_request_bodies(
    sent: Samples,
    workload: Workload,
    request_of: Callable[[int], Request],
    use: ServerUse,
) -> str | None:
    size = body_size(workload)
    if size is None:
        bodies = (request_of(number).body for number in sent.numbers.tolist())
        posted = sum(len(body or b"") for body in bodies)
    else:
        posted = size * len(sent.records)
    if posted == use.request_body_bytes:
        return None
    return (
        f"the upstream received {use.request_body_bytes:,} bytes of request bodies"
        f" instead of {posted:,}: send the body of each request as it is"
    )


def _compare_targets(
    different: Sequence[int], request_of: Callable[[int], Request], use: ServerUse
) -> str | None:
    """Compare methods and targets. All requests but the `different` ones are alike."""
    alike = (use.requests or 0) - len(different)

    def fits(change: Callable[[str], str]) -> bool:
        def hash_of(number: int) -> int:
            request = request_of(number)
            return hash_request(request.method, change(request.url))

        digest = sum(map(hash_of, different)) + alike * hash_of(-1)
        return digest == use.request_digest

    if fits(str):
        return None
    what = "with another method, path or query than the workload's"
    if fits(lambda url: url.partition("?")[0]):
        what = "without the query"
    return (
        f"the upstream got requests {what}: send each request as it is, with its whole"
        " URL"
    )


def find_impossible_times(sent: Samples, workload: Workload) -> str | None:
    """Return how many requests ended before the delay that they asked for was over.

    Only those that succeeded count. Return None if none of them did.
    """
    delay = delay_of(workload)
    if delay is None or (workload.stream is not None and varies(workload)):
        return None
    # A proxy answers 5xx at once.
    is_good = (sent.records["error"] == 0) & (sent.records["status"] < 500)
    good = sent.only(is_good)
    asked = good.delays(delay)
    seconds = good.records["seconds"]
    early = seconds < asked * (1 - _CLOCK_DRIFT) - _CLOCK_STEP
    if not early.any():
        return None
    first = int(early.argmax())
    return (
        f"impossible times: {int(early.sum()):,} of {len(early):,} requests ended"
        " before their delay was over, the first after"
        f" {units.time(float(seconds[first]))} of {units.time(float(asked[first]))}"
    )
