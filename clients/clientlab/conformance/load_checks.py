"""Equal budgets: every strategy does the same work, and ends as it should.

It sends each request once, and reads the answer to that request.
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
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import psutil

from clientlab.conformance import checking
from clientlab.conformance.checking import (
    Cause,
    CheckResult,
    Evidence,
    judge,
    measure,
    measure_against,
    serve,
)
from clientlab.conformance.server import Seen, ServerAnswer, ok
from clientlab.observing.process_handle import TrialFailed
from clientlab.strategies import Strategy, client_spec, executor_spec
from clientlab.trial.sample_log import process_notes
from clientlab.workload.requests import requests_of
from clientlab.workload.workload import change, make_workload

PATIENCE = 5.0  # seconds until requests, or the ends of processes, count as missing


class Gate:
    """Holds requests until `width` are in flight, or none has come for `PATIENCE`.

    It holds them 30 ms longer, to notice one too many.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._entered = itertools.count(1)
        self._latest = 0
        self._open = threading.Event()

    def wait(self) -> None:
        """Enter, and return when the gate is open."""
        entered = next(self._entered)
        self._latest = entered
        if entered == self._width:
            time.sleep(0.03)
            self._open.set()
        while not self._open.wait(PATIENCE):
            if self._latest == entered:
                self._open.set()


def check_same_work(strategy: Strategy) -> Iterator[CheckResult]:
    """Check 1,000 requests, 7 in flight (six chunks and a remainder), and fewer.

    The latter are fewer than may be in flight.
    """
    yield from _judge_load(_send(strategy, "POST", 1000, 7))
    if client_spec(strategy.client).url_only:
        return
    for name, method, requests in (
        ("one request", "PUT", 1),
        ("seven requests", "HEAD", 7),
    ):
        results = _judge_load(_send(strategy, method, requests, 10))
        failed = (result for result in results if result.broken)
        yield replace(next(failed, CheckResult(name)), check=name)


def _send(strategy: Strategy, method: str, requests: int, concurrency: int) -> Evidence:
    """Measure requests for ``/item/NUMBER?x=1``.

    The server holds the first ones until enough are in flight. It holds none of the
    warm-up, for which some executors send more than one.
    """
    workload = make_workload(
        path="/item/{k}?x=1", requests=requests, concurrency=concurrency, warmup=1
    )
    if not client_spec(strategy.client).url_only:
        workload = change(
            workload,
            method=method,
            headers={"X-Mine": "yes"},
            payload_size=None if method == "HEAD" else 300,
            parse=method == "POST",
        )
    width = strategy.in_flight(concurrency, requests)
    gate = Gate(min(width, concurrency + 1, requests))
    is_measured = threading.Event()
    hold = 0.001 if width > 1 else 0.0

    def answer(seen: Seen) -> ServerAnswer:
        if is_measured.is_set():
            gate.wait()
        return _answer(seen)

    with serve(answer, strategy, hold) as server:
        return measure(strategy, workload, server, on_start=is_measured.set)


def _answer(seen: Seen) -> bytes:
    """Return the answer to a request; that to every tenth one has chunks."""
    number = seen.target.removeprefix("/item/").partition("?")[0]
    if not number.isdigit():
        return ok(status="404 Not Found")
    body = _make_body(int(number))
    if seen.method == "HEAD":
        return ok(body)[: -len(body)]
    if int(number) % 10:
        return ok(body)
    answer = (
        b"HTTP/1.1 200 OK\r\n"
        b"Content-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    for at in range(0, len(body), 500):
        chunk = body[at : at + 500]
        answer += b"%x\r\n%s\r\n" % (len(chunk), chunk)
    return answer + b"0\r\n\r\n"


def _make_body(number: int) -> bytes:
    """Return the answer to request `number`.

    The lengths differ, so that a swapped answer is noticed.
    """
    return json.dumps({"number": number, "rest": "x" * (37 * number % 3000)}).encode()


def _judge_load(evidence: Evidence) -> Iterator[CheckResult]:
    yield _judge_targets(evidence)
    yield CheckResult("method, headers, body", *next(_find_changes(evidence), ()))
    yield CheckResult("recorded once", *next(_find_wrong_records(evidence), ()))
    yield CheckResult("whole body read", *next(_find_partly_read(evidence), ()))
    yield from _judge_concurrency(evidence)


def _judge_targets(evidence: Evidence) -> CheckResult:
    """Check that each request reached the server once, and no other."""
    requests = evidence.workload.load.requests or 0
    count = Counter(seen.target for seen in evidence.server.seen)
    wanted = {f"/item/{number}?x=1" for number in range(requests)}
    repeated = {target for target, times in count.items() if times > 1}
    wrong = [
        (checking.WRONG_URL, "not asked for", count.keys() - wanted),
        (checking.CACHED, "never sent", wanted - count.keys()),
        (checking.SENT_TWICE, "sent more than once", repeated),
    ]
    problems = {
        cause: f"{len(targets)} {problem}, as {min(targets)}"
        for cause, problem, targets in wrong
        if targets
    }
    message = (
        f"of {requests} requests, {count.total()} reached the server:"
        f" {'; '.join(problems.values())}"
    )
    return judge("1,000 requests", not problems, message, next(iter(problems), None))


def _judge_concurrency(evidence: Evidence) -> Iterator[CheckResult]:
    """Check how many requests were in flight, and how many connections were opened."""
    strategy = evidence.strategy
    requests = evidence.workload.load.requests or 0
    asked = evidence.workload.load.concurrency or 1
    allowed = strategy.in_flight(asked, requests)
    most = evidence.server.most_in_flight
    message = f"{allowed} may be in flight at once; {most} were"
    yield judge("never more in flight", most <= allowed, message, checking.TOO_MANY)
    full = min(allowed, requests)
    pool = strategy.settings.get("pool") or allowed  # 0 and None: no limit
    has_small_pool = strategy.settings.get("library_defaults", False) or pool < full
    least = 0 if has_small_pool else full
    if executor_spec(strategy.executor).unbounded:
        least = min(asked + 1, requests)
    message = f"{least} must be in flight at once; never more than {most} were"
    yield judge("as many in flight", most >= least, message, checking.TOO_FEW)
    yield _judge_connections(evidence, full, has_small_pool=has_small_pool)
    opened = evidence.server.connections
    by_lab = evidence.outcome.connections_begun
    # reqwest opens a connection while it waits for another, and may leave it unused:
    # both counts are right.
    is_right = by_lab in {opened, evidence.server.accepted}
    # A function's library may connect outside Python.
    is_hidden = evidence.client.url_only and by_lab == 0
    is_known = is_right or is_hidden or evidence.client.quirks.uncounted
    message = f"the lab counted {by_lab} connections, the server {opened}"
    yield judge("connections counted", is_known, message, checking.COUNTS)


def _judge_connections(
    evidence: Evidence, full: int, *, has_small_pool: bool
) -> CheckResult:
    """Check the connection policy, with at most `full` requests in flight."""
    check = "connection policy"
    policy = evidence.strategy.policy
    quirks = evidence.client.quirks
    requests = evidence.workload.load.requests or 0
    opened = evidence.server.connections
    if policy == "per call":
        message = (
            f"the policy is a connection for each of {requests} requests; {opened} were"
            " opened"
        )
        return judge(check, opened == requests, message, checking.KEPT)
    limit = 2 * full if quirks.opens_ahead else full
    method = evidence.workload.request.method
    closes_each = quirks.closes_after_head and method == "HEAD"
    if has_small_pool or closes_each:
        # A small pool throws connections away, and opens them again.
        limit = requests
    message = (
        f"connections are kept ({policy}), so at most {limit} may be"
        f" opened; {opened} were"
    )
    # The function's module may keep one from the warm-up.
    fewest = 0 if evidence.client.url_only else 1
    return judge(check, fewest <= opened <= limit, message, checking.NOT_KEPT)


def _find_changes(evidence: Evidence) -> Iterator[tuple[str, Cause | None]]:
    """Yield differences from the workload and from the client's version of HTTP.

    They concern the method, the headers and the body.
    """
    method = evidence.workload.request.method
    size = evidence.workload.request.payload_size
    wanted = "empty"
    pattern = b""
    if size:
        wanted = f"an object with 'data' of {size} characters"
        pattern = rb'{"data": ?"\w{%d}"}' % size
    asked = requests_of(evidence.workload, "")(0).headers
    headers = {name.lower(): value for name, value in asked.items()}
    for seen in evidence.server.seen:
        if seen.method != method:
            yield (
                f"the method is {method}, and {seen.method} reached the server",
                checking.METHOD,
            )
        if evidence.client.http == "2" != seen.version.removeprefix("HTTP/"):
            yield f"the client must speak HTTP/2, and spoke {seen.version}", None
        if not evidence.client.url_only:
            yield from _find_changed_headers(evidence, headers, seen.headers)
        if not re.fullmatch(pattern, seen.body):
            yield (
                f"the body must be {wanted}; {seen.body[:60]!r} reached the server",
                checking.BODY,
            )


def _find_changed_headers(
    evidence: Evidence, headers: Mapping[str, str], received: Mapping[str, str]
) -> Iterator[tuple[str, Cause]]:
    for name, value in headers.items():
        if received.get(name) != value:
            text = (
                f"header {name}: {value} reached the server as {received.get(name)!r}"
            )
            cause = checking.HEADERS
            if name == "accept-encoding":
                cause = checking.COMPRESSED
            yield text, cause
    permitted = {"host", "content-length", *headers}
    if evidence.client.quirks.keep_alive_header:
        permitted.add("connection")
    for name in received.keys() - permitted:
        cause = checking.COOKIES if name == "cookie" else checking.HEADERS
        yield f"nobody asked for header {name}: {received[name]!r}", cause


def _find_wrong_records(evidence: Evidence) -> Iterator[tuple[str, Cause | None]]:
    """Yield what is wrong with the records.

    Each request is recorded once, with status 200 and without an error.
    """
    requests = evidence.workload.load.requests or 0
    recorded = len(evidence.numbers)
    if sorted(evidence.numbers) != list(range(requests)):
        yield (
            f"each of {requests} requests must be recorded once; {recorded} were",
            checking.EXECUTOR,
        )
    for kind, count in Counter(evidence.kinds.values()).most_common(1):
        example = evidence.samples.examples[kind]
        cause = checking.PART_READ if "JSONDecodeError" in example else None
        yield f"{count} requests are recorded as {kind}: {example}", cause
    statuses = set(evidence.samples.records["status"].tolist())
    if statuses != {200}:
        yield f"all answers are 200; {statuses} is recorded", checking.SWALLOWED


def _find_partly_read(evidence: Evidence) -> Iterator[tuple[str, Cause]]:
    """Yield the answers of which the client read more or fewer bytes than were sent."""
    has_bodies = evidence.workload.request.method != "HEAD"
    sizes = evidence.samples.records["bytes"].tolist()
    for number, size in zip(evidence.numbers, sizes, strict=True):
        sent = len(_make_body(number)) if has_bodies else 0
        if number not in evidence.kinds and size != sent:
            message = (
                f"the answer to request {number} has {sent} bytes, and {size} were read"
            )
            yield message, checking.PART_READ


def check_duration(strategy: Strategy) -> Iterator[CheckResult]:
    """Check that a workload with a duration ends on time, and records its requests."""
    for seconds in (0.4, 2.0):  # a pool of processes may start too slowly for the first
        limit = time.monotonic() + 15

        def watch(
            _folder: Path, limit: float = limit, seconds: float = seconds
        ) -> None:
            if time.monotonic() > limit:
                raise TrialFailed(f"a workload of {seconds:g} s went on for 15 s")

        workload = make_workload(duration=seconds, concurrency=4, warmup=1)
        evidence = measure_against(
            lambda _: ok(), strategy, workload, hold=0.01, watch=watch
        )
        sent = len(evidence.server.seen)
        if sent > 4:
            break
    starts = evidence.samples.records["start"] - evidence.outcome.began
    latest = max(starts.tolist(), default=0.0)
    message = f"after {seconds:g} s no request may begin; one began at {latest:.1f} s"
    yield judge("ends on time", latest <= seconds + 1, message, checking.EXECUTOR)
    recorded = len(set(evidence.numbers))
    message = (
        f"{sent} requests reached the server in {seconds:g} s, and {recorded} were"
        " recorded"
    )
    is_right = recorded == len(evidence.numbers) == sent > 4
    yield judge("all of a duration", is_right, message, checking.EXECUTOR)


def check_stop(strategy: Strategy) -> Iterator[CheckResult]:
    """Check that no process outlives a trial that receives SIGTERM.

    It receives the signal while its requests wait for answers.
    """
    processes: list[psutil.Process] = []
    release = threading.Event()
    received: list[Seen] = []

    def answer(seen: Seen) -> ServerAnswer:
        received.append(seen)
        if len(received) > 6:  # the warm-up and a few more
            release.wait()
        return ok()

    def watch(folder: Path) -> None:
        if len(received) > 6 and not processes:
            trial = psutil.Process(os.getsid(process_notes(folder)[0].pid))
            processes.extend([trial, *trial.children(recursive=True)])
            trial.send_signal(signal.SIGTERM)

    # libcurl in the main thread delays a signal until its request ends, so the workload
    # has a time limit.
    workload = make_workload(
        path="/item/{k}?x=1", requests=40, concurrency=10, warmup=1, timeout=3.0
    )
    broken = ""
    try:
        measure_against(answer, strategy, workload, watch=watch)
        broken = "the trial went on after SIGTERM"
    except TrialFailed:
        if not processes:
            raise  # it failed by itself, before the signal
        _, alive = psutil.wait_procs(processes, timeout=PATIENCE)
        left = len([process for process in alive if _is_running(process)])
        if left:
            broken = f"{left} of {len(processes)} processes are left after SIGTERM"
    finally:
        release.set()
    yield judge("no process left", not broken, broken, checking.PROCESS)


def _is_running(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
