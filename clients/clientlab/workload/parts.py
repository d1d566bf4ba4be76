"""The parts of a workload.

Options and experiment files have no parts, so each field has a name that no other part
uses (see `workload.FIELDS`): their ``duration`` is `load.duration` here. Times are in
seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from clientlab import units
from clientlab.workload.streams import StreamFormat
from clientlab.workload.values import (
    LEAST_RATE,
    MOST_RATE,
    Delay,
    Exactly,
    ParsedBy,
    Stages,
    Statuses,
    ValueRange,
    parse_rate,
    parse_time,
)

BODY_FIELDS = ("body", "body_base64", "payload_size", "upload_size")
"""Of a request, which has one of them at most."""

DEFAULT_CHUNK_SIZE = 65_536
DEFAULT_WARM_UP = 10
LEAST_MEMORY = 64 << 20  # bytes; the smallest client takes 20 MiB
MOST_REQUESTS = 1_000_000_000  # in one trial; their records take 32 GB of disk space
_MOST_SECONDS = 1e9  # thirty years
_MOST_BYTES = 1 << 50

Whole = Annotated[int, Exactly()]
Switch = Annotated[bool, Exactly()]
Bytes = Annotated[Whole, ValueRange(1, _MOST_BYTES, "bytes")]
Memory = Annotated[
    int,
    ValueRange(
        LEAST_MEMORY, _MOST_BYTES, "bytes of memory that a trial's processes may use"
    ),
    ParsedBy(units.parse_bytes),
]
Rate = Annotated[
    float,
    ValueRange(LEAST_RATE, MOST_RATE, "requests per second"),
    ParsedBy(parse_rate),
]
Time = Annotated[
    float, ValueRange(1e-9, _MOST_SECONDS, "seconds"), ParsedBy(parse_time)
]


@dataclass(frozen=True, kw_only=True)
class EventStream:
    """A stream of events that each request reads.

    What is not given is that of the format's API.
    """

    format: StreamFormat

    first: Delay | None = None
    """Until the first event. None, like the next two: the user's own server decides."""

    every: Delay | None = None
    """From one event to the next."""

    events: (
        Annotated[Whole, ValueRange(1, 1_000_000, "events of each stream")] | None
    ) = None

    options: str = ""
    """Further settings of the upstream, as a query."""

    marks: Switch = True
    """Whether the lab's upstreams send it, whose events tell when they were written."""


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Requests that a file records: they replace path, method and body."""

    file: str

    sha256: str | None = None
    """Digest of the file. The plan fills it in, and trials check it."""

    times: Switch = False
    """Whether they are sent at their recorded times."""

    skip_bad: Switch = False
    """Whether entries that cannot be read are left out."""

    max_gap: Time | None = None
    """The longest pause between two recorded times. None: as recorded."""


@dataclass(frozen=True, kw_only=True)
class RequestTemplate:
    """What each request is. It has one body at most; the seed decides random ones."""

    path: str = "/"
    """Path and query. ``{k}`` stands for the number of the request."""

    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)

    body: str | None = None
    """A text, sent in UTF-8."""

    body_base64: str | None = None

    payload_size: Annotated[Whole, ValueRange(0, _MOST_BYTES, "characters")] | None = (
        None
    )
    """Random letters and digits in the field ``data`` of a JSON object."""

    encode: Literal["once", "each"] = "once"
    """Whether that object is encoded once, or for each request within its time."""

    upload_size: Bytes | None = None
    """Random bytes."""

    upload: Literal["whole", "stream"] = "whole"
    """Whether these are in memory, or generated while they are sent."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the client does with a response, and which ones are successes."""

    read: Literal["whole", "chunks"] = "whole"
    """Whether it keeps the body, or reads a piece at a time and keeps none."""

    chunk_size: Bytes = DEFAULT_CHUNK_SIZE
    """Most bytes of a piece."""

    decode: Switch = False
    """Whether requests ask for gzip, and the client hands over decoded bodies."""

    parse: Switch = False
    """Whether bodies are parsed as JSON."""

    elapsed: Switch = False
    """Whether the library's own time is recorded, too."""

    first_byte: Switch = False
    """Whether the time to the first byte of the body is recorded, too.

    The client reads the body as it arrives and does not keep it.
    """

    expect: Statuses | None = None
    """The statuses of successes. None: those below 400."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """How many requests a trial sends, and when.

    Closed: `concurrency` of them are in flight until `requests` or `duration` is
    reached. Open: they arrive by `rate` or `stages`, or at their recorded times.
    """

    requests: (
        Annotated[Whole, ValueRange(1, MOST_REQUESTS, "requests in total")] | None
    ) = None

    duration: Time | None = None

    concurrency: (
        Annotated[Whole, ValueRange(1, MOST_REQUESTS, "requests in flight")] | None
    ) = None
    """None: the strategy's own number."""

    rate: Rate | None = None
    stages: Stages | None = None
    arrivals: Literal["uniform", "poisson"] = "uniform"

    max_late: Time | None = None
    """A request this far behind its planned start is dropped. None: the timeout."""

    connections: Literal["cold", "warm"] | None = None
    """Whether they are opened before the clock starts. None: see `load.is_warm`."""

    warmup: Annotated[
        Whole, ValueRange(0, MOST_REQUESTS, "requests before the measured ones")
    ] = DEFAULT_WARM_UP


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What ends a request, or a trial (see observing/measurement.py)."""

    timeout: Time = 30.0
    """Of connecting, and of each wait for bytes."""

    call_timeout: Time | None = None
    """Of a whole call, with all its attempts."""

    request_limit: Time | None = None
    """Of a whole request. None: 30 s more than the timeout."""

    deadline: Time | None = None
    """Since the start of the trial's process. None: the lab chooses."""

    memory_limit: Memory | None = None
    """Bytes of all processes together."""
