"""Faults: what an upstream does instead of giving a good answer.

The lab puts them to `/faults` before a trial, as JSON with the keys `faults` and
`seed`. Only attempts that carry the number of their call meet them (`&call=7`, the last
parameter of the query). `faults` is a text whose parts are separated by `;`:

    503:0.05            answer 5 % of the attempts with this status, 400 to 599
    429:0.1,after=1     the same with `Retry-After: 1`
    reset:0.01          reset the connection before anything is done
    close:0.01          do the work, then end the connection without a response
    truncate:0.01       do the work, send half of the body, and end the connection
    stall:0.01          do the work, and send nothing until the client leaves
    slow:0.01,over=2    do the work, and send the body evenly over 2 s
    garbage:0.01        do the work, send what is not HTTP, and end the connection
    outage:2..5         reset each attempt from 2 s to 5 s after the first attempt
    slow:3..6,0.2       delay each attempt in this time by 0.2 s more
    limit:100           answer with 429 beyond 100 attempts per second (token bucket)
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import math
import mmap
import os
import re
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from ctypes import Structure, c_char, c_double, c_int64, memset, sizeof
from typing import Any, NamedTuple

CARRIED_OUT = frozenset({"good", "close", "truncate", "stall", "slow", "garbage"})
"""Kinds of attempts whose work is done, so that a POST takes effect."""
SILENT = frozenset({"reset", "close", "stall", "garbage"})
"""Kinds of attempts that get no response."""
BAD_BYTES = b"\x00\xff\x01 these bytes are not HTTP \xfe\r\n\r\n"
"""The whole response of `garbage`."""
RESET_AT_CLOSE = struct.pack("ii", 1, 0)
"""Value of SO_LINGER with which closing a socket resets its connection."""
BIN_SECONDS = 0.1

_TOO_MANY_REQUESTS = 429
_BURST_SECONDS = 0.1
# With 1, what is gained between two attempts would often be lost.
_SMALLEST_BURST = 2.0
_ROUNDING = 1e-9  # of a sum of shares

_NUMBER = r"(\d{1,12}(?:\.\d{1,18})?(?:e-\d{1,2})?)"
_CALL = re.compile(r"(?:(.*)&)?call=(-?\d{1,18})", re.DOTALL | re.ASCII)
_STATUS = re.compile(rf"([45]\d\d):{_NUMBER}(?:,after=(\d{{1,9}}))?", re.ASCII)
_BREAK = re.compile(rf"(reset|close|truncate|stall|garbage):{_NUMBER}", re.ASCII)
_SLOW = re.compile(rf"slow:{_NUMBER},over={_NUMBER}", re.ASCII)
_OUTAGE = re.compile(rf"outage:{_NUMBER}\.\.{_NUMBER}", re.ASCII)
_SLOW_STATE = re.compile(rf"slow:{_NUMBER}\.\.{_NUMBER},{_NUMBER}", re.ASCII)
_LIMIT = re.compile(rf"limit:{_NUMBER}", re.ASCII)

_MOST_KINDS = 256  # more than there are
_MOST_CHARACTERS = 4096
_MOST_BINS = 24 * 3600 * 10
_MOST_CALLS = 1 << 20


class Fault(NamedTuple):
    """What happens to an attempt.

    `kind`: its name in the summary; for a status, its digits. `share`: of all attempts.
    `retry_after`: whole seconds. `over`: seconds for which the body is sent. `delay`:
    seconds of slow states, before anything else.
    """

    kind: str
    share: float = 0.0
    status: int | None = None
    retry_after: int | None = None
    over: float = 0.0
    delay: float = 0.0

    @property
    def is_carried_out(self) -> bool:
        """Return whether the work of the request is done."""
        return self.kind in CARRIED_OUT


class State(NamedTuple):
    """A time of the trial, in seconds since its first attempt, and the delay in it."""

    start: float
    end: float
    delay: float = 0.0

    def holds(self, elapsed: float) -> bool:
        """Return whether the server is in this state now."""
        return self.start <= elapsed < self.end


class FaultPlan(NamedTuple):
    """A parsed text of faults. `rate`: attempts per second, or None without a limit."""

    shares: tuple[Fault, ...] = ()
    outages: tuple[State, ...] = ()
    slow: tuple[State, ...] = ()
    rate: float | None = None

    def kinds(self) -> list[str]:
        """Return the kinds that attempts can have."""
        always = ["good", "outage", "limit"]
        return always + [fault.kind for fault in self.shares]

    def choose(self, number: float) -> Fault:
        """Return the fault in whose share of [0, 1) the number is, in their order."""
        edge = 0.0
        for fault in self.shares:
            edge += fault.share
            if number < edge:
                return fault
        return Fault("good")


def parse_faults(text: str, longest: float) -> FaultPlan:
    """Parse a text of faults. Raise ValueError with one line.

    `longest`: the longest delay in seconds.
    """
    shares: list[Fault] = []
    outages: list[State] = []
    slow: list[State] = []
    rates: list[float] = []
    for part in text.split(";") if text else []:
        if found := _STATUS.fullmatch(part):
            after = None if found[3] is None else int(found[3])
            shares.append(Fault(found[1], float(found[2]), int(found[1]), after))
        elif found := _BREAK.fullmatch(part):
            shares.append(Fault(found[1], float(found[2])))
        elif found := _SLOW.fullmatch(part):
            shares.append(Fault("slow", float(found[1]), over=float(found[2])))
        elif found := _OUTAGE.fullmatch(part):
            outages.append(State(*map(float, found.groups())))
        elif found := _SLOW_STATE.fullmatch(part):
            slow.append(State(*map(float, found.groups())))
        elif found := _LIMIT.fullmatch(part):
            rates.append(float(found[1]))
        else:
            raise ValueError(
                f"{part!r} is not a fault: write 503:0.05, 429:0.1,after=1, reset:0.01,"
                " close, truncate, stall or garbage likewise, slow:0.01,over=2,"
                " outage:2..5, slow:3..6,0.2 or limit:100"
            )
    if len(rates) > 1:
        raise ValueError(f"{text!r} has more than one limit")
    rate = rates[0] if rates else None
    plan = FaultPlan(tuple(shares), tuple(outages), tuple(slow), rate)
    _check(plan, text, longest)
    return plan


def _check(plan: FaultPlan, text: str, longest: float) -> None:
    shares = plan.shares
    if len({fault.kind for fault in shares}) < len(shares):
        raise ValueError(f"{text!r} has two shares of one fault")
    if sum(fault.share for fault in shares) > 1 + _ROUNDING:
        raise ValueError(f"the shares of {text!r} are more than 1 together")
    if any(state.start >= state.end for state in plan.outages + plan.slow):
        raise ValueError(f"a state of {text!r} ends before it begins")
    delays = [fault.over for fault in shares] + [state.delay for state in plan.slow]
    if max(delays, default=0.0) > longest:
        raise ValueError(
            f"a time of {text!r} is beyond {longest:g} s, which MOCKUPSTREAM_MAX_DELAY"
            " raises"
        )
    if plan.rate == 0:
        raise ValueError("the limit must be above 0")


def draw(seed: int, call: int, attempt: int) -> float:
    """Return the number in [0, 1) that decides about an attempt.

    It is the top 53 bits of a BLAKE2b digest of eight bytes, read as a big-endian
    number, divided by 2 ** 53. The digest is that of the three arguments as signed
    little-endian integers of eight bytes.
    """
    packed = struct.pack("<qqq", seed, call, attempt)
    digest = hashlib.blake2b(packed, digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / (1 << 53)


def split_call(query: str) -> tuple[str, int | None]:
    """Return a query without its last parameter `call`, and the value of that.

    Without this parameter, return the query and None.
    """
    found = _CALL.fullmatch(query) if "call=" in query else None
    if found is None:
        return query, None
    return found[1] or "", int(found[2])


class _CallCounts(Structure):
    """The counts of a call: its number + 1, or 0 if it is unused, and its attempts."""

    _fields_ = (
        ("key", c_int64),
        ("attempts", c_int64),
        ("carried_out", c_int64),
    )


class _Counts(Structure):
    """What was counted since the faults were put.

    `used_bins`, `used_calls`: how many of the first ones were used. `first`: the moment
    of the first attempt. `tokens`: those of the limit, `filled` seconds after it.
    """

    _fields_ = (
        ("calls", c_int64),
        ("attempts", c_int64),
        ("carried_out", c_int64),
        ("repeated", c_int64),
        ("used_bins", c_int64),
        ("used_calls", c_int64),
        ("first", c_double),
        ("tokens", c_double),
        ("filled", c_double),
        ("kinds", c_int64 * _MOST_KINDS),
    )


class _Shared(Structure):
    """The memory of a FaultBook. `generation`: how often faults were put."""

    _fields_ = (
        ("generation", c_int64),
        ("seed", c_int64),
        ("text", c_char * _MOST_CHARACTERS),
        ("counts", _Counts),
        ("bins", c_int64 * _MOST_BINS),
        ("calls", _CallCounts * _MOST_CALLS),
    )


class FaultBook:
    """The faults of a trial and the counts of its attempts, shared by all workers.

    The gunicorn master makes it before it forks. Only memory that was used is taken.
    """

    def __init__(
        self, longest: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`longest`: the longest delay in seconds."""
        self._longest = longest
        self._clock = clock
        memory = mmap.mmap(-1, sizeof(_Shared))
        self._shared = _Shared.from_buffer(memory)
        # A lock of a file is released when its process is killed. It does not hold back
        # the other threads of a process.
        self._file = _open_lock_file()
        self._threads = threading.Lock()
        self._plan = FaultPlan()
        self._kinds = self._plan.kinds()
        self._parsed_generation = 0

    @property
    def is_on(self) -> bool:
        """Return whether faults were ever put, even if the last ones were empty."""
        return bool(self._shared.generation)

    def put(self, document: bytes) -> tuple[int, str]:
        """Forget all counts and begin anew with the faults of a JSON document.

        Return the status and the text of the response.
        """
        try:
            asked = json.loads(document)
            self._begin(str(asked["faults"]), int(asked["seed"]))
        except (
            KeyError,
            TypeError,
            ValueError,
            ArithmeticError,
            struct.error,
        ) as error:
            return 400, f'{error}; send {{"faults": "503:0.05", "seed": 1}}\n'
        return 204, ""

    def _begin(self, text: str, seed: int) -> None:
        parse_faults(text, self._longest)
        if len(text) > _MOST_CHARACTERS:
            raise ValueError(f"faults have at most {_MOST_CHARACTERS} characters")
        struct.pack("<q", seed)  # raises an error if it has more than 64 bits
        shared = self._shared
        with self._lock():
            used = shared.counts.used_calls * sizeof(_CallCounts)
            memset(shared.calls, 0, used)
            used = shared.counts.used_bins * sizeof(c_int64)
            memset(shared.bins, 0, used)
            shared.counts = _Counts(tokens=math.inf)
            shared.text = text.encode()
            shared.seed = seed
            shared.generation += 1

    def meet(self, call: int) -> Fault:
        """Count an attempt of a call (from 0), and return what it meets."""
        with self._lock():
            self._read_plan()
            elapsed = self._count_attempt()
            counts, of_call = self._shared.counts, self._find_call(call)
            fault = self._choose(call, of_call.attempts, elapsed)
            of_call.attempts += 1
            counts.kinds[self._kinds.index(fault.kind)] += 1
            if fault.is_carried_out:
                if of_call.carried_out:
                    counts.repeated += 1
                else:
                    counts.carried_out += 1
                of_call.carried_out += 1
        return fault

    def summary(self) -> dict[str, Any]:
        """Return what was put and counted, as `GET /faults` shows it."""
        with self._lock():
            self._read_plan()
            shared, counts = self._shared, self._shared.counts
            return {
                "faults": shared.text.decode(),
                "seed": shared.seed,
                "calls": counts.calls,
                "attempts": counts.attempts,
                "carried_out": counts.carried_out,
                "repeated": counts.repeated,
                "kinds": dict(zip(self._kinds, counts.kinds, strict=False)),
                "width": BIN_SECONDS,
                "bins": shared.bins[: counts.used_bins],
            }

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        with self._threads:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _read_plan(self) -> None:
        """Parse the faults if another process has put new ones."""
        shared = self._shared
        if shared.generation != self._parsed_generation:
            self._plan = parse_faults(shared.text.decode(), self._longest)
            self._kinds = self._plan.kinds()
            self._parsed_generation = shared.generation

    def _count_attempt(self) -> float:
        """Count an attempt, and return the seconds since the first one."""
        counts, now = self._shared.counts, self._clock()
        if not counts.attempts:
            counts.first = now
        counts.attempts += 1
        elapsed: float = now - counts.first
        place = int(elapsed / BIN_SECONDS)
        if place < _MOST_BINS:
            self._shared.bins[place] += 1
            counts.used_bins = max(counts.used_bins, place + 1)
        return elapsed

    def _find_call(self, call: int) -> _CallCounts:
        """Return the counts of a call.

        They overwrite those of an earlier call at the same place.
        """
        place = call % _MOST_CALLS
        found: _CallCounts = self._shared.calls[place]
        if found.key != call + 1:
            found.key = call + 1
            found.attempts = 0
            found.carried_out = 0
            counts = self._shared.counts
            counts.calls += 1
            counts.used_calls = max(counts.used_calls, place + 1)
        return found

    def _choose(self, call: int, attempt: int, elapsed: float) -> Fault:
        plan = self._plan
        if any(state.holds(elapsed) for state in plan.outages):
            return Fault("outage")
        wait = 0.0 if plan.rate is None else self._take_token(plan.rate, elapsed)
        if wait:
            after = max(1, math.ceil(wait))
            return Fault("limit", status=_TOO_MANY_REQUESTS, retry_after=after)
        delay = sum(state.delay for state in plan.slow if state.holds(elapsed))
        number = draw(self._shared.seed, call, attempt)
        return plan.choose(number)._replace(delay=delay)

    def _take_token(self, rate: float, elapsed: float) -> float:
        """Take a token and return 0, or return the seconds until the next one."""
        counts = self._shared.counts
        gained = (elapsed - counts.filled) * rate
        capacity = max(_SMALLEST_BURST, rate * _BURST_SECONDS)
        counts.tokens = min(capacity, counts.tokens + gained)
        counts.filled = elapsed
        if counts.tokens < 1:
            wait: float = (1 - counts.tokens) / rate
            return wait
        counts.tokens -= 1
        return 0.0


def _open_lock_file() -> int:
    """Return the descriptor of a file without a name, which workers inherit."""
    if hasattr(os, "memfd_create"):  # the image's file system is read-only
        return os.memfd_create("mockupstream-faults")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
