"""The workload of a trial, its checks, and the requests that it consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal

from clientlab import units
from clientlab.errors import FieldError
from clientlab.workload import replay
from clientlab.workload.arrivals import LEAST_RATE, MOST_RATE, Stages, rate_of
from clientlab.workload.delays import Delay, seconds
from clientlab.workload.request_line import check_request_line
from clientlab.workload.written import Exactly, ParsedBy, ValueRange, check_bounds

NUMBER_FIELD = "{k}"
"""Placeholder in a path for the number of the request (``/todos/{k}``)."""

DEFAULT_REQUESTS = 1000
DEFAULT_CHUNK_SIZE = 65_536
LEAST_MEMORY = 64 << 20
"""Bytes. The smallest client takes 20 MiB."""
MOST_REQUESTS = 1_000_000_000
"""In one trial. Their records take 32 GB of disk space."""
MOST_SHARDS = 1000
_MOST_SECONDS = 1e9  # thirty years
_MOST_BYTES = 1 << 50

_Whole = Annotated[int, Exactly()]
Switch = Annotated[bool, Exactly()]
Amount = Annotated[_Whole, ValueRange(1, MOST_REQUESTS, "requests in all")]
Flight = Annotated[_Whole, ValueRange(1, MOST_REQUESTS, "requests in flight")]
WarmUp = Annotated[_Whole, ValueRange(0, MOST_REQUESTS, "requests before the measured ones")]
Shards = Annotated[_Whole, ValueRange(1, MOST_SHARDS, "processes that divide a trial")]
Characters = Annotated[_Whole, ValueRange(0, _MOST_BYTES, "characters")]
Bytes = Annotated[_Whole, ValueRange(1, _MOST_BYTES, "bytes")]
Memory = Annotated[
    int,
    ValueRange(LEAST_MEMORY, _MOST_BYTES, "bytes of memory that a trial's processes may hold"),
    ParsedBy(partial(units.bytes_of, unit="B")),
]
Time = Annotated[float, ValueRange(1e-9, _MOST_SECONDS, "seconds"), ParsedBy(seconds)]
Rate = Annotated[float, ValueRange(LEAST_RATE, MOST_RATE, "requests per second"), ParsedBy(rate_of)]
Seed = Annotated[_Whole, ValueRange(-(2**63), 2**63 - 1, "a seed")]

NOT_MEASURED = frozenset({"deadline", "replay"})
"""Fields of a workload that change no figure of a finished trial: runs that differ in them can be compared.

Of recorded requests the digest decides, and not the folder of their file.
"""

Body = bytes | Any
"""Bytes, or an `Upload` (an `AsyncUpload` for asyncio clients). The libraries share no type for uploads."""


@dataclass(slots=True, eq=False)
class Request:
    """One request as every client gets it. `url` is absolute; `body` is encoded."""

    method: str
    url: str
    headers: dict[str, str]
    body: Body | None


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What a trial sends. Closed model: `concurrency` requests in flight until `requests` or `duration` is reached.

    Open model: requests arrive by `rate` or `stages` (see `load`). Times are in seconds. A request has one body: `body`
    as text; a JSON object whose field ``data`` has `payload_size` random letters and digits; or `upload_size` random
    bytes, in memory (``whole``) or made while they are sent (``stream``). The seed decides them.
    With `read` ``chunks``, the client reads at most `chunk_size` bytes of a response at a time and keeps none.
    `elapsed` also records the library's own time. `replay`: a file of recorded requests, which replace path, method
    and body; `replay_sha256`: its digest. A trial fails `deadline` seconds after the start of its process; None: the
    lab chooses. `timeout` limits connecting and each wait for bytes. `request_limit` (of a whole request; None: 30 s
    more than the timeout) and `memory_limit` (bytes of all processes) end a trial: see measuring/limits.py.
    """

    path: str = "/"
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    replay: str | None = None
    replay_sha256: str | None = None  # the plan fills it in, and trials check it
    payload_size: Characters | None = None
    encode: Literal["once", "each"] = "once"
    parse: Switch = False
    upload_size: Bytes | None = None
    upload: Literal["whole", "stream"] = "whole"
    read: Literal["whole", "chunks"] = "whole"
    chunk_size: Bytes = DEFAULT_CHUNK_SIZE
    elapsed: Switch = False
    delay: Delay | None = None
    requests: Amount | None = None
    duration: Time | None = None
    rate: Rate | None = None
    stages: Stages | None = None
    arrivals: Literal["uniform", "poisson"] = "uniform"
    max_late: Time | None = None
    concurrency: Flight | None = None
    timeout: Time = 30.0
    deadline: Time | None = None
    request_limit: Time | None = None
    memory_limit: Memory | None = None
    connections: Literal["cold", "warm"] | None = None  # see load.is_warm
    warmup: WarmUp = 10
    shards: Shards = 1
    seed: Seed = 1  # workloads with different seeds have independent random draws

    def __post_init__(self) -> None:
        if self.requests is None and self.duration is None:
            object.__setattr__(self, "requests", DEFAULT_REQUESTS)

    def number_of(self, k: int) -> int:
        """Return the number of request k in the whole trial: it decides path, delay and recorded request."""
        return k


def delay_of(workload: Workload) -> Callable[[int], float] | None:
    """Return a function from k to the delay in seconds that request k asks of the upstream, or None without a delay."""
    if workload.delay is None:
        return None
    delay = workload.delay.at(workload.seed)
    return lambda k: delay(workload.number_of(k))


def varies(workload: Workload) -> bool:
    """Return whether requests of the workload differ, or each one is encoded anew."""
    drawn = workload.delay is not None and workload.delay.constant is None
    return NUMBER_FIELD in workload.path or drawn or encodes_each(workload) or workload.replay is not None


def encodes_each(workload: Workload) -> bool:
    """Return whether the body is encoded for each request, inside the timed span."""
    return workload.encode == "each" and workload.payload_size is not None


def pinned(workload: Workload) -> Workload:
    """Return the workload with the digest of its recorded requests: trials that find another file fail."""
    if workload.replay is None:
        return workload
    return replace(workload, replay_sha256=replay.read(workload.replay, workload.replay_sha256).digest)


def check(workload: Workload) -> None:
    """Raise FieldError for a workload that cannot be measured."""
    check_bounds(workload)
    check_request_line(workload.method, workload.path.replace(NUMBER_FIELD, ""), workload.headers)
    is_closed = workload.rate is None and workload.stages is None
    if is_closed and workload.requests is not None and workload.duration is not None:
        message = "a trial ends after a number of requests or after a duration; leave out one of them"
        raise FieldError(["requests"], message, also=["duration"])
    if workload.deadline is not None and workload.deadline <= (workload.duration or 0.0):
        message = "write more than the trial needs, its duration included"
        raise FieldError(["deadline"], message, value=f"{workload.deadline:g}")
    if workload.request_limit is not None and workload.request_limit < workload.timeout:
        message = f"a whole request may take no less than one wait for bytes; write at least {workload.timeout:g} s"
        raise FieldError(["request_limit"], message, value=f"{workload.request_limit:g}", also=["timeout"])
    _check_bodies(workload)


def _check_bodies(workload: Workload) -> None:
    bodies = ("body", "payload_size", "upload_size")
    first, *others = [name for name in bodies if getattr(workload, name) is not None] or [""]
    if others:
        raise FieldError([first], "a request has one body; leave out all but one", also=others)
    if workload.upload == "stream" and workload.upload_size is None:
        message = "there is nothing to send; set the number of bytes with `upload_size`"
        raise FieldError(["upload"], message, value="stream")
    for name in ("parse", "elapsed"):
        if workload.read == "chunks" and getattr(workload, name):
            message = f"`{name}` needs a body that is read whole; leave out one of them"
            raise FieldError([name], message, also=["read"])
    if workload.replay is None and workload.replay_sha256 is not None:
        raise FieldError(["replay_sha256"], "it is the digest of the file of `replay`, which is missing")
    plain = Workload()
    for name in ("path", "method", "body", "payload_size", "upload_size", "encode", "upload"):
        if workload.replay is not None and getattr(workload, name) != getattr(plain, name):
            raise FieldError(["replay"], f"recorded requests have their own; leave out `{name}`", also=[name])
