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
from clientlab.workload.value_range import ValueRange, check_bounds
from clientlab.workload.written import ParsedBy

NUMBER_FIELD = "{k}"
"""Placeholder in a path for the number of the request (``/todos/{k}``)."""

DEFAULT_REQUESTS = 1000
DEFAULT_CHUNK_SIZE = 65_536
LEAST_MEMORY = 64 << 20
"""Bytes. The smallest client takes 20 MiB."""
MOST_REQUESTS = 1_000_000_000
"""In one trial. Their records take 32 GB of disk space."""

MOST_SHARDS = 1000
"""Of a trial."""

_MOST_SECONDS = 1e9
"""Limit of a length of time: thirty years."""
_MOST_BYTES = 1 << 50

Amount = Annotated[int, ValueRange(1, MOST_REQUESTS, "requests in all")]
Flight = Annotated[int, ValueRange(1, MOST_REQUESTS, "requests in flight")]
WarmUp = Annotated[int, ValueRange(0, MOST_REQUESTS, "requests before the measured ones")]
Shards = Annotated[int, ValueRange(1, MOST_SHARDS, "processes that divide a trial")]
Characters = Annotated[int, ValueRange(0, _MOST_BYTES, "characters")]
Bytes = Annotated[int, ValueRange(1, _MOST_BYTES, "bytes")]
Memory = Annotated[
    int,
    ValueRange(LEAST_MEMORY, _MOST_BYTES, "bytes of memory that a trial's processes may hold"),
    ParsedBy(partial(units.bytes_of, unit="B")),
]
Time = Annotated[float, ValueRange(1e-9, _MOST_SECONDS, "seconds"), ParsedBy(seconds)]
Rate = Annotated[float, ValueRange(LEAST_RATE, MOST_RATE, "requests per second"), ParsedBy(rate_of)]
Seed = Annotated[int, ValueRange(-(2**63), 2**63 - 1, "a seed")]

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

    Open model: requests arrive by `rate` or `stages` (see `load`). Durations are in seconds. The body of a request is
    one of three: `body` as text; a JSON object whose field ``data`` has `payload_size` random letters and digits; or
    `upload_size` random bytes, in memory (``whole``) or made while they are sent (``stream``). The seed decides them,
    in a trial that of its round (`seeds.in_round`).
    With `read` ``chunks``, the client reads at most `chunk_size` bytes of a response at a time and keeps none.
    `elapsed` also records the library's own time. `replay`: a file of recorded requests, which take the place of path,
    method and body; `replay_sha256`: its digest. A trial fails `deadline` seconds after the start of its process; None
    is the lab's choice. `timeout` limits connecting and each wait for bytes. `request_limit` (seconds of a whole
    request; None: 30 more than the timeout) and `memory_limit` (bytes of all processes) end a trial that reaches them:
    see measuring/limits.py.
    """

    path: str = "/"
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    replay: str | None = None
    replay_sha256: str | None = None  # of that file; the plan fills it in, and trials check it
    payload_size: Characters | None = None
    encode: Literal["once", "each"] = "once"
    parse: bool = False
    upload_size: Bytes | None = None
    upload: Literal["whole", "stream"] = "whole"
    read: Literal["whole", "chunks"] = "whole"
    chunk_size: Bytes = DEFAULT_CHUNK_SIZE
    elapsed: bool = False
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
        """The number of request k in the whole trial, which decides its path, its delay and its recorded request."""
        return k


def delay_of(workload: Workload) -> Callable[[int], float] | None:
    """A function from k to the delay in seconds that request k asks of the upstream; None without a delay."""
    if workload.delay is None:
        return None
    delay = workload.delay.at(workload.seed)
    return lambda k: delay(workload.number_of(k))


def varies(workload: Workload) -> bool:
    """Whether requests of the workload differ, or each one is encoded anew."""
    drawn = workload.delay is not None and workload.delay.constant is None
    return NUMBER_FIELD in workload.path or drawn or encodes_each(workload) or workload.replay is not None


def encodes_each(workload: Workload) -> bool:
    """Whether the body is encoded for each request, inside the timed span."""
    return workload.encode == "each" and workload.payload_size is not None


def pinned(workload: Workload) -> Workload:
    """The workload with the digest of its recorded requests: trials that find another file fail. Raises FieldError."""
    if workload.replay is None:
        return workload
    return replace(workload, replay_sha256=replay.read(workload.replay, workload.replay_sha256).digest)


def check(workload: Workload) -> None:
    """Raises FieldError for a workload that cannot be measured."""
    check_bounds(workload)
    _check_amount(workload)
    if workload.deadline is not None and workload.deadline <= (workload.duration or 0.0):
        message = "write more than the trial needs, its duration included"
        raise FieldError(["deadline"], message, value=f"{workload.deadline:g}")
    _check_limits(workload)
    _check_body(workload)
    _check_reading(workload)
    check_request_line(workload.method, workload.path.replace(NUMBER_FIELD, ""), workload.headers)
    _check_replay(workload)


def _check_amount(workload: Workload) -> None:
    closed = workload.rate is None and workload.stages is None
    if closed and workload.requests is not None and workload.duration is not None:
        raise FieldError(
            ["requests"], "a trial ends after a number of requests or after a duration; leave out one of them",
            also=["duration"],
        )  # fmt: skip


def _check_limits(workload: Workload) -> None:
    limit = workload.request_limit
    if limit is not None and limit < workload.timeout:
        raise FieldError(
            ["request_limit"], "a whole request may take no less than one wait for bytes; write at least `timeout`, "
            f"which is {workload.timeout:g} s", value=f"{limit:g}", also=["timeout"],
        )  # fmt: skip


def _check_body(workload: Workload) -> None:
    bodies = ("body", "payload_size", "upload_size")
    first, *others = [field for field in bodies if getattr(workload, field) is not None] or [""]
    if others:
        raise FieldError([first], "a request has one body; leave out all but one", also=others)
    if workload.upload == "stream" and workload.upload_size is None:
        raise FieldError(
            ["upload"], "there is nothing to send; set the number of bytes with `upload_size`", value="stream"
        )


def _check_reading(workload: Workload) -> None:
    if workload.read == "chunks":
        for field in ("parse", "elapsed"):
            if getattr(workload, field):
                message = f"`{field}` needs a body that is read whole; leave out one of them"
                raise FieldError([field], message, also=["read"])


def _check_replay(workload: Workload) -> None:
    if workload.replay is None:
        if workload.replay_sha256 is not None:
            raise FieldError(["replay_sha256"], "it is the digest of the file of `replay`, which is missing")
        return
    for name in ("path", "method", "body", "payload_size", "upload_size", "encode", "upload"):
        if getattr(workload, name) != getattr(_PLAIN, name):
            raise FieldError(["replay"], f"recorded requests have their own; leave out `{name}`", also=[name])


_PLAIN = Workload()
