"""The workload of a trial: its fields and checks, and its variants for a round and for
a shard.
"""

from __future__ import annotations

import base64
import hashlib
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote_to_bytes

from clientlab import units
from clientlab.errors import FieldError
from clientlab.text import mask_text
from clientlab.workload.streams import (
    DEFAULT_EVENTS,
    DEFAULT_EVERY,
    DEFAULT_FIRST,
    MOST_EVENTS,
    UNKNOWN_SECONDS,
    StreamFormat,
    check_options,
    default_call,
)
from clientlab.workload.values import (
    LEAST_RATE,
    MOST_RATE,
    Delay,
    Exactly,
    Link,
    ParsedBy,
    Stages,
    Statuses,
    ValueRange,
    check_bounds,
    parse_rate,
    parse_time,
)

NUMBER_FIELD = (  # placeholder in a path for the number of the request (``/todos/{k}``)
    "{k}"
)

DEFAULT_CHUNK_SIZE = 65_536
LEAST_MEMORY = 64 << 20  # bytes; the smallest client takes 20 MiB
MOST_REQUESTS = 1_000_000_000  # in one trial; their records take 32 GB of disk space
MOST_SHARDS = 1000
# How long a worker whose shard is ready waits for the others before the trial fails.
READY_SECONDS = 30.0
MOST_SEED = 2**63 - 1
# Short enough to type; among 1,000 runs, two have the same seed with a chance of 0.05
# %.
_MOST_DRAWN_SEED = 10**9
_MOST_SECONDS = 1e9  # thirty years
_MOST_BYTES = 1 << 50
_STREAMS, _STREAMS_OF_WARM_UP = 20, 2  # of a trial that names no number
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_NOT_IN_PATH = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9/?:@!$&'()*+,;=%._~\[\]-]")
_RESPELLED = re.compile(r"%..|['\[\]]")
_HEADER_VALUE = re.compile(r"[ -~\t]*")

_Whole = Annotated[int, Exactly()]
Switch = Annotated[bool, Exactly()]
Bytes = Annotated[_Whole, ValueRange(1, _MOST_BYTES, "bytes")]
Memory = Annotated[
    int,
    ValueRange(
        LEAST_MEMORY, _MOST_BYTES, "bytes of memory that a trial's processes may use"
    ),
    ParsedBy(units.parse_bytes),
]
Time = Annotated[
    float, ValueRange(1e-9, _MOST_SECONDS, "seconds"), ParsedBy(parse_time)
]

NOT_MEASURED = frozenset({"deadline", "replay"})
"""Fields that change no figure of a finished trial.

Recorded requests are compared by their digest, not their path.
"""

Body = bytes | Any
"""Bytes, or an `Upload` (an `AsyncUpload` for asyncio clients).

The libraries share no type for uploads.
"""


@dataclass(slots=True, eq=False)
class Request:
    """One request as every client gets it. `url` is absolute; `body` is encoded."""

    method: str
    url: str
    headers: dict[str, str]
    body: Body | None


@dataclass(frozen=True)
class ToolReport:
    """The figures of an external program that sent all requests of a trial, by its own
    clock.

    `seconds`: from the first request to the last response. `times`: seconds of each
    request, ascending. `kept_alive`: requests whose connection was kept. `errors`:
    error kind → count.
    """

    seconds: float
    times: Sequence[float]
    bytes_received: int
    connections: int
    kept_alive: int
    errors: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What a trial sends.

    Closed model: `concurrency` requests in flight until `requests` or `duration` is
    reached.

    Open model: requests arrive by `rate` or `stages` (see `load`). Times are in
    seconds. A request has one body: `body` as text; the bytes of `body_base64`; a JSON
    object whose field ``data`` has `payload_size` random letters and digits; or
    `upload_size` random bytes, in memory (``whole``) or generated while they are sent
    (``stream``). The seed decides random contents. With `decode`, requests ask for
    gzip, and the client hands over decoded bodies. With `read` ``chunks``, the client
    reads at most `chunk_size` bytes of a response at a time and keeps none. `elapsed`
    also records the library's own time, and `first_byte` the time to the first byte of
    the body, which the client reads as it arrives and does not keep. `expect`: the
    statuses of successes; None: those below 400. `replay`: a file of recorded requests,
    which replace path, method and body; `replay_sha256`: its digest. `skip_bad` leaves
    out its unreadable entries. `replay_times` sends the others at their recorded times,
    with gaps of at most `max_gap` (None: as recorded). A trial fails `deadline` seconds
    after the start of its process; None: the lab chooses. `timeout` limits connecting
    and each wait for bytes. `request_limit` (of a whole request; None: 30 s more than
    the timeout) and `memory_limit` (bytes of all processes) end a trial: see
    trial/measurement.py. A `cold` trial sends one request from a new interpreter,
    without a warm-up, and its time includes the imports.

    With `stream`, each request reads a stream of `events` events in this format, from
    the lab's upstreams: the first event after `first`, and the others `every` so often.
    `stream_options` are further settings, as a query. Method, path and body are those
    of the format's API if they are not given. With `marks` false, the server is the
    user's own, which decides what it sends. A stream takes long, so there are 20 of
    them, and 2 to warm up, if no number is given. That of a cold trial has one event by
    default.
    """

    path: str = "/"
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    body_base64: str | None = None
    replay: str | None = None
    replay_sha256: str | None = None  # the plan fills it in, and trials check it
    replay_times: Switch = False
    skip_bad: Switch = False
    max_gap: Time | None = None
    payload_size: Annotated[_Whole, ValueRange(0, _MOST_BYTES, "characters")] | None = (
        None
    )
    encode: Literal["once", "each"] = "once"
    parse: Switch = False
    decode: Switch = False
    upload_size: Bytes | None = None
    upload: Literal["whole", "stream"] = "whole"
    read: Literal["whole", "chunks"] = "whole"
    chunk_size: Bytes = DEFAULT_CHUNK_SIZE
    elapsed: Switch = False
    first_byte: Switch = False
    stream: StreamFormat | None = None
    first: Delay | None = None
    every: Delay | None = None
    events: (
        Annotated[_Whole, ValueRange(1, 1_000_000, "events of each stream")] | None
    ) = None
    stream_options: str = ""
    marks: Switch = True
    expect: Statuses | None = None
    delay: Delay | None = None
    requests: (
        Annotated[_Whole, ValueRange(1, MOST_REQUESTS, "requests in total")] | None
    ) = None
    duration: Time | None = None
    rate: (
        Annotated[
            float,
            ValueRange(LEAST_RATE, MOST_RATE, "requests per second"),
            ParsedBy(parse_rate),
        ]
        | None
    ) = None
    stages: Stages | None = None
    arrivals: Literal["uniform", "poisson"] = "uniform"
    max_late: Time | None = None
    concurrency: (
        Annotated[_Whole, ValueRange(1, MOST_REQUESTS, "requests in flight")] | None
    ) = None
    timeout: Time = 30.0
    deadline: Time | None = None
    request_limit: Time | None = None
    memory_limit: Memory | None = None
    connections: Literal["cold", "warm"] | None = None  # see load.is_warm
    cold: Switch = False
    warmup: Annotated[
        _Whole, ValueRange(0, MOST_REQUESTS, "requests before the measured ones")
    ] = 10
    shards: Annotated[
        _Whole, ValueRange(1, MOST_SHARDS, "processes that divide a trial")
    ] = 1
    # Workloads with different seeds have independent random draws.
    seed: Annotated[_Whole, ValueRange(-(2**63), MOST_SEED, "a seed")] = 1

    def __post_init__(self) -> None:
        if self.requests is None and self.duration is None and not self.replay_times:
            object.__setattr__(
                self,
                "requests",
                1 if self.cold else 1000 if self.stream is None else _STREAMS,
            )
        if self.cold:
            object.__setattr__(self, "warmup", 0)
        if self.stream is not None:
            self._fill_in_stream(self.stream)

    def _fill_in_stream(self, stream: StreamFormat) -> None:
        method, path, body = default_call(stream)
        filled: dict[str, Any] = {}
        if (
            self.warmup == Workload.warmup
        ):  # a stream takes much longer than another request
            filled["warmup"] = _STREAMS_OF_WARM_UP
        if body is not None:
            filled |= {
                "body": self.body or body,
                "method": method if self.method == "GET" else self.method,
            }
        if self.path == "/" and (self.marks or body is not None):
            filled["path"] = path
        if self.marks:
            events = 1 if self.cold else DEFAULT_EVENTS
            given = {"first": DEFAULT_FIRST, "every": DEFAULT_EVERY, "events": events}
            filled |= {
                name: value
                for name, value in given.items()
                if getattr(self, name) is None
            }
        for name, value in filled.items():
            object.__setattr__(self, name, value)

    def number_of(self, k: int) -> int:
        """Return the number of request k in the whole trial, which decides path, delay
        and recorded request.
        """
        return k


@dataclass(frozen=True, kw_only=True)
class ShardWorkload(Workload):
    """The part of a workload that shard `index` (from 0) of `of` shards does: requests
    i, i + n, i + 2n and so on.

    Request k has the same path, delay and planned start as in an undivided trial. In an
    open load, `requests` and the rate are those of all shards.
    """

    index: int
    of: int

    def number_of(self, k: int) -> int:
        return self.index + k * self.of  # below 0 in the warm-up


def identify(workload: Workload) -> str:
    """Return eight characters that are equal for workloads whose figures can be
    compared.
    """
    names = [
        field.name
        for field in fields(workload)
        if field.name not in NOT_MEASURED | {"seed", "shards"}
    ]
    text = "\n".join(f"{name}={getattr(workload, name)}" for name in names)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def take_share(workload: Workload, index: int, in_flight: int) -> ShardWorkload:
    """Return the part of a workload for one shard.

    `in_flight`: the concurrency of all shards together.
    """
    own = {one.name: getattr(workload, one.name) for one in fields(Workload)}
    is_closed = (
        workload.rate is None and workload.stages is None and not workload.replay_times
    )
    if workload.requests is not None and is_closed:
        own["requests"] = divide_evenly(workload.requests, index, workload.shards)
    own["concurrency"] = divide_evenly(in_flight, index, workload.shards)
    return ShardWorkload(**own, index=index, of=workload.shards)


def divide_evenly(whole: int, index: int, shards: int) -> int:
    """Return a shard's part of a whole number.

    The parts add up to the whole, and differ by at most 1.
    """
    return len(range(index, whole, shards))


def draw_seed() -> int:
    """Return a random seed for a new run."""
    return random.SystemRandom().randrange(_MOST_DRAWN_SEED)


def reseed_for_round(workload: Workload, seed: int, number: int) -> Workload:
    """Return the workload with the seed of round `number` (from 1) in a run with this
    `seed`: the same for all arms.
    """
    digest = hashlib.sha256(f"{seed}:{workload.seed}:{number}".encode()).digest()
    return replace(workload, seed=int.from_bytes(digest[:8]) >> 1)


def delay_of(workload: Workload) -> Callable[[int], float] | None:
    """Return a function from k to the delay in seconds that request k asks of the
    upstream, or None without a delay.

    That of a stream is the time until its last event; the mean one if it is drawn.
    """
    first, every, events = workload.first, workload.every, workload.events
    if first is not None and every is not None and events is not None:
        seconds = first.mean + (events - 1) * every.mean
        return lambda _: seconds
    if workload.delay is None:
        return None
    delay = workload.delay.at(workload.seed)
    return lambda k: delay(workload.number_of(k))


def stream_seconds(workload: Workload) -> float:
    """Return the seconds that each stream takes at least, or may take if the server is
    the user's own.

    Else 0.
    """
    if workload.stream is None:
        return 0.0
    planned = delay_of(workload)
    return UNKNOWN_SECONDS if planned is None else planned(0)


def unavoidable_of(
    workload: Workload, link: Link | None
) -> Callable[[int], float] | None:
    """Return a function from k to the seconds that request k takes with any client, or
    None without delay and link.

    They are its delay and one round trip of the link. Connecting, slow start and a
    limited bandwidth take more.
    """
    delay = delay_of(workload)
    if link is None:
        return delay
    return (lambda _: link.rtt) if delay is None else (lambda k: delay(k) + link.rtt)


def varies(workload: Workload) -> bool:
    """Return whether requests of the workload differ, or each one is encoded anew."""
    is_drawn = any(
        one is not None and one.form
        for one in (workload.delay, workload.first, workload.every)
    )
    return (
        NUMBER_FIELD in workload.path
        or is_drawn
        or encodes_each(workload)
        or workload.replay is not None
    )


def encodes_each(workload: Workload) -> bool:
    """Return whether the body is encoded for each request, inside the timed span."""
    return workload.encode == "each" and workload.payload_size is not None


def check_workload(workload: Workload) -> None:
    """Raise FieldError for a workload that cannot be measured.

    `load.check_load` checks the load model.
    """
    check_bounds(workload)
    check_request_line(
        workload.method, workload.path.replace(NUMBER_FIELD, ""), workload.headers
    )
    if workload.requests is not None and workload.duration is not None:
        message = (
            "a trial ends after a number of requests or after a duration; leave out one"
            " of them"
        )
        raise FieldError(["requests"], message, also=["duration"])
    if workload.deadline is not None and workload.deadline <= (
        workload.duration or 0.0
    ):
        message = "write more than the trial needs, including its duration"
        raise FieldError(["deadline"], message, value=f"{workload.deadline:g}")
    if workload.request_limit is not None and workload.request_limit < workload.timeout:
        message = (
            "it must not be shorter than the timeout; write at least"
            f" {workload.timeout:g} s"
        )
        raise FieldError(
            ["request_limit"],
            message,
            value=f"{workload.request_limit:g}",
            also=["timeout"],
        )
    if workload.cold:
        only = {
            "replay_times": False,
            "duration": None,
            "rate": None,
            "stages": None,
            "requests": 1,
            "shards": 1,
        }
        if wrong := [
            name for name, value in only.items() if getattr(workload, name) != value
        ]:
            message = (
                "a cold trial sends one request from a new interpreter; leave"
                f" `{wrong[0]}` out"
            )
            raise FieldError(wrong[:1], message, also=["cold"])
        if workload.connections == "warm":
            raise FieldError(
                ["connections"],
                "a cold trial opens its connection itself; leave it out",
                also=["cold"],
            )
    _check_stream(workload)
    _check_bodies(workload)


def _check_stream(workload: Workload) -> None:
    of_stream = [
        name
        for name in ("first", "every", "events", "stream_options")
        if getattr(workload, name)
    ]
    if workload.stream is None:
        if of_stream:
            raise FieldError(
                of_stream[:1],
                "only a stream has it; name the format of its events with `stream`",
            )
        return
    others = (
        "delay",
        "replay",
        "payload_size",
        "upload_size",
        "parse",
        "elapsed",
        "first_byte",
    )
    if wrong := [
        name
        for name in others
        if getattr(workload, name) is not None and getattr(workload, name) is not False
    ]:
        advice = "write `first`" if wrong == ["delay"] else "leave out one of them"
        raise FieldError(
            ["stream"], f"a stream has no `{wrong[0]}`; {advice}", also=wrong[:1]
        )
    if workload.read == "chunks":
        raise FieldError(
            ["read"], "a stream is read as it arrives; leave it out", also=["stream"]
        )
    if (
        workload.every is not None
        and not workload.every.form
        and not workload.every.values[0]
    ):
        raise FieldError(
            ["every"], "the gap between events must be above 0; write 1ms or more"
        )
    if (
        workload.events
        and workload.requests
        and workload.events * workload.requests > MOST_EVENTS
    ):
        message = (
            f"a trial may have {MOST_EVENTS:,} events in all; write fewer requests or"
            " events"
        )
        raise FieldError(
            ["events"], message, also=["requests"], value=f"{workload.events:,}"
        )
    check_options(workload.stream_options, workload.events or 1)


def _check_bodies(workload: Workload) -> None:
    names = ("body", "body_base64", "payload_size", "upload_size")
    bodies = [name for name in names if getattr(workload, name) is not None]
    if len(bodies) > 1:
        raise FieldError(
            bodies[:1], "a request has one body; leave out all but one", also=bodies[1:]
        )
    try:
        base64.b64decode(workload.body_base64 or "", validate=True)
    except ValueError as error:
        raise FieldError(
            ["body_base64"], f"{error}; encode the bytes in base64"
        ) from error
    if workload.upload == "stream" and workload.upload_size is None:
        message = "there is nothing to send; set the number of bytes with `upload_size`"
        raise FieldError(["upload"], message, value="stream")
    streamed_by = (
        "first_byte"
        if workload.first_byte
        else "read"
        if workload.read == "chunks"
        else None
    )
    for name in ("parse", "elapsed"):
        if streamed_by is not None and getattr(workload, name):
            message = f"`{name}` needs a body that is read whole; leave out one of them"
            raise FieldError([name], message, also=[streamed_by])
    if workload.replay is None:
        if workload.replay_sha256 is not None:
            raise FieldError(
                ["replay_sha256"],
                "it is the digest of the file of `replay`, which is missing",
            )
        return
    for name in ("path", "method", *names, "encode", "upload"):
        if getattr(workload, name) != getattr(Workload, name):
            raise FieldError(
                ["replay"],
                f"recorded requests have their own; leave out `{name}`",
                also=[name],
            )


def spell_path(path: str) -> str:
    """Return a path and query in the one spelling that every library leaves as it is
    (RFC 3986, 6.2.2).
    """
    spelled = _RESPELLED.sub(
        lambda found: quote(unquote_to_bytes(found[0]), safe=""), path
    )
    path, _, query = spelled.partition("?")
    return f"{path}?{query}" if query else path


def check_request_line(method: str, path: str, headers: Mapping[str, str]) -> None:
    """Raise FieldError for characters that clients would treat differently (RFC 9110,
    5.6.2, and RFC 3986).
    """
    if not _TOKEN.fullmatch(method):
        raise FieldError(["method"], "write one word, like POST", value=repr(method))
    if not path.startswith("/"):
        raise FieldError(
            ["path"], "write it from the root, like /todos/1", value=repr(path)
        )
    if found := _NOT_IN_PATH.search(path):
        raise FieldError(
            ["path"],
            f"a URL must not contain {found[0]!r}; percent-encode it",
            value=repr(path),
        )
    if not {".", ".."}.isdisjoint(spell_path(path).partition("?")[0].split("/")):
        raise FieldError(
            ["path"],
            "some libraries resolve '.' and '..'; write the path without them",
            value=repr(path),
        )
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            line = repr(mask_text(f"{name}: {value}"))
            raise FieldError(
                ["headers"], "write name and value in ASCII, on one line", value=line
            )


def check_shards(
    shards: int, requests: int | None, in_flight: int, strategy: str
) -> None:
    """Raise FieldError if a shard would have no request, or none in flight."""
    if requests is not None and shards > requests:
        raise FieldError(
            ["shards"],
            f"a trial has only {requests:,} requests; write fewer shards",
            value=shards,
        )
    if shards > in_flight:
        message = (
            f"strategy {strategy!r} has at most {in_flight:,} requests in flight here;"
            " write fewer shards"
        )
        raise FieldError(["shards"], message, value=shards)
