"""Equal budgets: every strategy does the same work, each request once with its own
answer, and ends as it should.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil

from clientlab.conformance import checks
from clientlab.conformance.checks import (
    Cause,
    CheckResult,
    Evidence,
    judge,
    measure_against,
)
from clientlab.conformance.server import Seen, ServerAnswer, ok
from clientlab.strategies import Strategy, client_spec, executor_spec
from clientlab.trial.process_handle import TrialFailed
from clientlab.trial.sample_log import process_notes
from clientlab.workload.requests import requests_of
from clientlab.workload.workload import Workload

PATIENCE = 5.0  # seconds until requests, or the ends of processes, count as missing


class Gate:
    """Holds requests until `width` are in flight, or for `PATIENCE`, and 30 ms longer
    to notice one too many.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._entered = itertools.count(1)
        self._open = threading.Event()

    def wait(self) -> None:
        """Enter, and return when the gate is open."""
        if next(self._entered) == self._width:
            time.sleep(0.03)
        else:
            self._open.wait(PATIENCE)
        self._open.set()


def check_same_work(strategy: Strategy) -> Iterator[CheckResult]:
    """Check 1,000 requests, 7 in flight (six chunks and a remainder), and fewer
    requests than may be in flight.
    """
    yield from _judge_load(_send(strategy, "POST", 1000, 7))
    few = (("one request", "PUT", 1), ("seven requests", "HEAD", 7))
    for name, method, requests in () if client_spec(strategy.client).url_only else few:
        failed = (
            result
            for result in _judge_load(_send(strategy, method, requests, 10))
            if result.broken
        )
        yield replace(next(failed, CheckResult(name)), check=name)


def _send(strategy: Strategy, method: str, requests: int, concurrency: int) -> Evidence:
    """Measure requests for ``/item/NUMBER?x=1``.

    The server holds the first ones until enough are in flight.
    """
    width = strategy.in_flight(concurrency, requests)
    workload = Workload(
        path="/item/{k}?x=1", requests=requests, concurrency=concurrency, warmup=1
    )
    if not client_spec(strategy.client).url_only:
        size, parse = None if method == "HEAD" else 300, method == "POST"
        workload = replace(
            workload,
            method=method,
            headers={"X-Mine": "yes"},
            payload_size=size,
            parse=parse,
        )
    gate, is_warm = Gate(min(width, concurrency + 1, requests)), threading.Event()

    def answer(seen: Seen) -> ServerAnswer:
        if is_warm.is_set():
            gate.wait()
        is_warm.set()  # the first request is the warm-up, and is not held
        number = seen.target.removeprefix("/item/").partition("?")[0]
        if not number.isdigit():
            return ok(status="404 Not Found")
        body = _make_body(int(number))
        if seen.method == "HEAD":
            return ok(body)[: -len(body)]
        if int(number) % 10:
            return ok(body)
        head = (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding:"
            b" chunked\r\n\r\n"
        )
        pieces = [body[at : at + 500] for at in range(0, len(body), 500)]
        return (
            head
            + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
            + b"0\r\n\r\n"
        )

    return measure_against(answer, strategy, workload, 0.001 if width > 1 else 0.0)


def _make_body(number: int) -> bytes:
    """Return the answer to request `number`.

    The lengths differ, so that a swapped answer is noticed.
    """
    return json.dumps({"number": number, "rest": "x" * (37 * number % 3000)}).encode()


def _judge_load(found: Evidence) -> Iterator[CheckResult]:
    strategy, workload, server, quirks = (
        found.strategy,
        found.workload,
        found.server,
        found.client.quirks,
    )
    requests, asked = workload.requests or 0, workload.concurrency or 1
    count = Counter(seen.target for seen in server.seen)
    wanted = {f"/item/{number}?x=1" for number in range(requests)}
    wrong = (
        (checks.WRONG_URL, "not asked for", count.keys() - wanted),
        (checks.CACHED, "never sent", wanted - count.keys()),
        (
            checks.SENT_TWICE,
            "sent more than once",
            {target for target, times in count.items() if times > 1},
        ),
    )
    told = {
        cause: f"{len(targets)} {how}, as {min(targets)}"
        for cause, how, targets in wrong
        if targets
    }
    message = (
        f"of {requests} requests, {count.total()} reached the server:"
        f" {'; '.join(told.values())}"
    )
    yield judge("1,000 requests", not told, message, next(iter(told), None))
    yield CheckResult("method, headers, body", *next(_find_changes(found), ()))
    yield CheckResult("recorded once", *next(_find_wrong_records(found), ()))
    yield CheckResult("whole body read", *next(_find_partly_read(found), ()))
    allowed, most = strategy.in_flight(asked, requests), server.most_in_flight
    message = f"{allowed} may be in flight at once; {most} were"
    yield judge("never more in flight", most <= allowed, message, checks.TOO_MANY)
    full = min(allowed, requests)
    pool = strategy.settings.get("pool") or allowed  # 0 and None: no limit
    has_small_pool = strategy.settings.get("library_defaults", False) or pool < full
    least = (
        min(asked + 1, requests)
        if executor_spec(strategy.executor).unbounded
        else 0
        if has_small_pool
        else full
    )
    message = f"{least} must be in flight at once; never more than {most} were"
    yield judge("as many in flight", most >= least, message, checks.TOO_FEW)
    opened, by_lab = server.connections, found.outcome.connections_begun
    if strategy.policy == "per call":
        message = (
            f"the policy is a connection for each of {requests} requests; {opened} were"
            " opened"
        )
        yield judge("connection policy", opened == requests, message, checks.KEPT)
    else:
        limit = 2 * full if quirks.opens_ahead else full
        if has_small_pool or (quirks.closes_after_head and workload.method == "HEAD"):
            limit = (
                requests  # a small pool throws connections away, and opens them again
            )
        message = (
            f"connections are kept ({strategy.policy}), so at most {limit} may be"
            f" opened; {opened} were"
        )
        fewest = (
            0 if found.client.url_only else 1
        )  # the function's module may keep one from the warm-up
        yield judge(
            "connection policy", fewest <= opened <= limit, message, checks.NOT_KEPT
        )
    # reqwest opens a connection while it waits for another, and may leave it unused:
    # both counts are right.
    is_right = by_lab in {opened, server.accepted}
    is_hidden = quirks.uncounted or (
        found.client.url_only and by_lab == 0
    )  # its library connects outside Python
    message = f"the lab counted {by_lab} connections, the server {opened}"
    yield judge("connections counted", is_right or is_hidden, message, checks.COUNTS)


def _find_changes(found: Evidence) -> Iterator[tuple[str, Cause | None]]:
    """Yield differences from the workload's method, headers and body, and from the
    client's version of HTTP.
    """
    method, size = found.workload.method, found.workload.payload_size
    asked = {} if found.client.url_only else requests_of(found.workload, "")(0).headers
    headers = {name.lower(): value for name, value in asked.items()}
    permitted = {"host", "content-length", *headers}
    if found.client.quirks.keep_alive_header:
        permitted.add("connection")
    for seen in found.server.seen:
        if seen.method != method:
            yield (
                f"the method is {method}, and {seen.method} reached the server",
                checks.METHOD,
            )
        if found.client.http == "2" != seen.version.removeprefix("HTTP/"):
            yield f"the client must speak HTTP/2, and spoke {seen.version}", None
        for name, value in headers.items():
            if (got := seen.headers.get(name)) != value:
                cause = (
                    checks.COMPRESSED if name == "accept-encoding" else checks.HEADERS
                )
                yield f"header {name}: {value} reached the server as {got!r}", cause
        for name in [] if found.client.url_only else seen.headers.keys() - permitted:
            cause = checks.COOKIES if name == "cookie" else checks.HEADERS
            yield f"nobody asked for header {name}: {seen.headers[name]!r}", cause
        if not re.fullmatch(rb'{"data": ?"\w{%d}"}' % size if size else b"", seen.body):
            wanted = f"an object with 'data' of {size} characters" if size else "empty"
            yield (
                f"the body must be {wanted}; {seen.body[:60]!r} reached the server",
                checks.BODY,
            )


def _find_wrong_records(found: Evidence) -> Iterator[tuple[str, Cause | None]]:
    """Yield what is wrong unless each request was recorded once, with status 200 and
    without an error.
    """
    requests, statuses = (
        found.workload.requests or 0,
        set(found.samples.records["status"].tolist()),
    )
    if sorted(found.numbers) != list(range(requests)):
        yield (
            (
                f"each of {requests} requests must be recorded once;"
                f" {len(found.numbers)} were"
            ),
            checks.EXECUTOR,
        )
    for kind, count in Counter(found.kinds.values()).most_common(1):
        example = found.samples.examples[kind]
        cause = checks.PART_READ if "JSONDecodeError" in example else None
        yield f"{count} requests are recorded as {kind}: {example}", cause
    if statuses != {200}:
        yield f"all answers are 200; {statuses} is recorded", checks.SWALLOWED


def _find_partly_read(found: Evidence) -> Iterator[tuple[str, Cause | None]]:
    """Yield the answers of which the client read more or fewer bytes than the server
    sent.
    """
    for number, size in zip(
        found.numbers, found.samples.records["bytes"].tolist(), strict=True
    ):
        sent = 0 if found.workload.method == "HEAD" else len(_make_body(number))
        if number not in found.kinds and size != sent:
            yield (
                (
                    f"the answer to request {number} has {sent} bytes, and {size} were"
                    " read"
                ),
                checks.PART_READ,
            )


def check_duration(strategy: Strategy) -> Iterator[CheckResult]:
    """Check that a workload with a duration ends on time, and that each of its requests
    is recorded.
    """
    for seconds in (0.4, 2.0):  # a pool of processes may start too slowly for the first
        limit = time.monotonic() + 15

        def watch(
            _folder: Path, limit: float = limit, seconds: float = seconds
        ) -> None:
            if time.monotonic() > limit:
                raise TrialFailed(f"a workload of {seconds:g} s went on for 15 s")

        workload = Workload(duration=seconds, concurrency=4, warmup=1)
        found = measure_against(
            lambda _: ok(), strategy, workload, hold=0.01, watch=watch
        )
        if len(found.server.seen) > 4:
            break
    latest = max(
        (found.samples.records["start"] - found.outcome.began).tolist(), default=0.0
    )
    message = f"after {seconds:g} s no request may begin; one began at {latest:.1f} s"
    yield judge("ends on time", latest <= seconds + 1, message, checks.EXECUTOR)
    recorded, sent = len(set(found.numbers)), len(found.server.seen)
    message = (
        f"{sent} requests reached the server in {seconds:g} s, and {recorded} were"
        " recorded"
    )
    is_right = recorded == len(found.numbers) == sent > 4
    yield judge("all of a duration", is_right, message, checks.EXECUTOR)


def check_stop(strategy: Strategy) -> Iterator[CheckResult]:
    """Check that no process outlives a trial that receives SIGTERM while its requests
    wait for answers.
    """
    processes: list[psutil.Process] = []
    release = threading.Event()
    seen: list[Seen] = []

    def answer(one: Seen) -> ServerAnswer:
        seen.append(one)
        if len(seen) > 6:  # the warm-up and a few more
            release.wait()
        return ok()

    def watch(folder: Path) -> None:
        if len(seen) > 6 and not processes:
            trial = psutil.Process(os.getsid(process_notes(folder)[0].pid))
            processes.extend([trial, *trial.children(recursive=True)])
            trial.send_signal(signal.SIGTERM)

    # libcurl in the main thread delays a signal until its request ends, so the workload
    # has a time limit.
    workload = Workload(
        path="/item/{k}?x=1", requests=40, concurrency=10, warmup=1, timeout=3.0
    )
    try:
        measure_against(answer, strategy, workload, watch=watch)
        broken = "the trial went on after SIGTERM"
    except TrialFailed:
        if not processes:
            raise  # it failed by itself, before the signal
        _, alive = psutil.wait_procs(processes, timeout=PATIENCE)
        left = [
            one
            for one in alive
            if one.is_running() and one.status() != psutil.STATUS_ZOMBIE
        ]
        broken = (
            f"{len(left)} of {len(processes)} processes are left after SIGTERM"
            if left
            else ""
        )
    finally:
        release.set()
    yield judge("no process left", not broken, broken, checks.PROCESS)
