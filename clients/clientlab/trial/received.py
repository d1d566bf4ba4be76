"""Compare what a client reports with what the upstream received and sent, and with the
delays that it asked for.

A user's function may drop the query, skip the body or answer from a cache. It would win
every comparison. The upstream counts requests, statuses, bytes of bodies, and a hash of
each request's method and target, so the measured process has nothing to do for these
checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import unquote
from zlib import crc32

from clientlab import units
from clientlab.trial.result import PlannedTrial
from clientlab.trial.samples import Samples
from clientlab.trial.server_counters import ServerUse
from clientlab.workload.requests import body_size, requests_of
from clientlab.workload.workload import Workload, delay_of, varies

# Seconds, and share of a delay, by which a request may be shorter than its delay: two
# machines' clocks differ.
_CLOCK_STEP, _CLOCK_DRIFT = 1e-3, 0.01


def hash_request(method: str, target: str) -> int:
    """Return a hash of a request's method and target, as the upstream computes it
    (mockupstream.metrics).
    """
    decoded = unquote(target) if "%" in target else target
    return crc32(f"{method} {decoded}".encode(errors="surrogateescape")) & 0xFFFFF


def find_difference(
    sent: Samples, planned: PlannedTrial, workload: Workload, use: ServerUse
) -> str | None:
    """Return how the client's report differs from what the upstream counted, or None if
    both agree.

    `sent`: the requests that were sent. `use`: the growth of the upstream's counters
    during the trial.
    """
    if None in {
        use.requests,
        use.failed_requests,
        use.response_body_bytes,
        use.request_body_bytes,
        use.request_digest,
    }:
        return None
    plain = replace(
        workload, encode="once"
    )  # encoding each body anew would make all requests look different
    return next(_find_differences(sent, planned, plain, use), None)


def _find_differences(  # noqa: C901 - one check after the other
    sent: Samples, planned: PlannedTrial, workload: Workload, use: ServerUse
) -> Iterator[str]:
    """Yield the differences, the simplest first.

    A request without a response may have reached the upstream or not. A 5xx response
    may be the proxy's own.
    """
    records, got = sent.records, use.requests or 0
    status, calls, good = records["status"], len(records), records["error"] == 0
    of_upstream = (good | (status > 0)) & ((status < 500) | (planned.route == "direct"))
    answered = int(of_upstream.sum())
    if got < answered:
        yield (
            f"the client reports {answered:,} answered requests, and the upstream got"
            f" {got:,}: send one with each call, keep no answers, and let time-outs"
            " raise"
        )
    # Requests of an earlier trial or another program, which are answered during this
    # one.
    others = use.in_flight or 0
    if others and use.slots is not None and others >= use.slots:
        return  # and nobody knows how many wait for a thread of the upstream
    if got > calls + others:
        yield (
            f"the upstream got {got:,} requests from {calls:,} calls: the client"
            " retries or follows redirects, or another program called the upstream"
        )
    if others:
        return
    failed, unknown = int((of_upstream & (status >= 400)).sum()), calls - answered
    if not failed <= (use.failed_requests or 0) <= failed + unknown:
        yield (
            f"the upstream answered {use.failed_requests:,} requests with an error"
            f" status, and the client reports {failed:,}: return the status of the"
            " response"
        )
    if varies(workload) and (unknown or got < calls):
        return  # nobody knows which of the requests the upstream got
    # Every request got its response from the upstream. Libraries that parse streams
    # encode and hand over other bytes.
    whole = not unknown and workload.stream is None
    wrote, read = use.response_body_bytes or 0, int(records["bytes"].sum())
    # A request without a response may have got a part of it. All are alike then, and
    # half is far from what they got.
    least = (
        0
        if workload.stream
        else wrote
        if whole
        else wrote * int(good.sum()) / max(1, calls) / 2
    )
    if read < least or (whole and read > wrote):
        yield (
            f"the upstream sent {wrote:,} bytes of bodies, and the client reports"
            f" {read:,}: read the whole body of each response, and return it as it came"
        )
    size, every = body_size(workload), sent.numbers.tolist()
    delay_shares = (
        {}
        if sent.delay_shares is None
        else dict(zip(every, sent.delay_shares.tolist(), strict=True))
    )
    request_of = requests_of(
        workload, "", share_of=lambda number: delay_shares.get(number, 1.0)
    )
    posted = (
        sum(len(request_of(number).body or b"") for number in every)
        if size is None
        else size * calls
    )
    if whole and posted != use.request_body_bytes:
        yield (
            f"the upstream received {use.request_body_bytes:,} bytes of request bodies"
            f" instead of {posted:,}: send the body of each request as it is"
        )
    different, alike = every, 0
    if not varies(workload):
        different = [number for number in every if delay_shares.get(number, 1.0) < 1.0]
        alike = got - len(different)
    if different and (unknown or got < calls):
        return  # as above

    def fits(change: Callable[[str], str]) -> bool:
        def hash_of(number: int) -> int:
            one = request_of(number)
            return hash_request(one.method, change(one.url))

        digest = sum(map(hash_of, different)) + alike * hash_of(-1)
        return digest == use.request_digest

    if not fits(str):
        without = "without the query" if fits(lambda url: url.partition("?")[0]) else ""
        what = without or "with another method, path or query than the workload's"
        yield (
            f"the upstream got requests {what}: send each request as it is, with its"
            " whole URL"
        )


def find_impossible_times(sent: Samples, workload: Workload) -> str | None:
    """Return how many successful requests ended before the delay that they asked for,
    or None if none did.
    """
    delay = delay_of(workload)
    if delay is None or (workload.stream is not None and varies(workload)):
        return None
    good = sent.only(
        (sent.records["error"] == 0) & (sent.records["status"] < 500)
    )  # a proxy answers 5xx at once
    asked, seconds = good.delays(delay), good.records["seconds"]
    early = seconds < asked * (1 - _CLOCK_DRIFT) - _CLOCK_STEP
    if not early.any():
        return None
    first = int(early.argmax())
    return (
        f"impossible times: {int(early.sum()):,} of {len(early):,} requests ended"
        " before their delay was over, the first after"
        f" {units.time(float(seconds[first]))} of {units.time(float(asked[first]))}"
    )
