"""The workload of a trial, and its variants for a round and for a shard."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

from clientlab.errors import FieldError, FieldKey
from clientlab.workload.faults import Faults
from clientlab.workload.parts import (
    DEFAULT_WARM_UP,
    EventStream,
    Limits,
    Load,
    Reading,
    Replay,
    RequestTemplate,
    Switch,
    Whole,
)
from clientlab.workload.streams import (
    DEFAULT_EVENTS,
    DEFAULT_EVERY,
    DEFAULT_FIRST,
    UNKNOWN_SECONDS,
    default_call,
)
from clientlab.workload.values import Delay, Link, ValueRange

NUMBER_FIELD = "{k}"
"""Placeholder in a path for the number of the request: ``/todos/{k}``."""

MOST_SHARDS = 1000
# How long a worker whose shard is ready waits for the others before the trial fails.
READY_SECONDS = 30.0
MOST_SEED = 2**63 - 1
# Short enough to type; among 1,000 runs, two have the same seed with a chance of 0.05
# %.
_MOST_DRAWN_SEED = 10**9
_DEFAULT_REQUESTS = 1000
# A stream takes much longer than another request.
_DEFAULT_STREAMS = 20
_WARM_UP_STREAMS = 2

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
    """What a trial sends. `make_workload` makes one of the names that users write."""

    stream: EventStream | None = None
    """What each request reads instead of a body."""

    replay: Replay | None = None
    """Where the requests come from. None: all are made by `request`."""

    request: RequestTemplate = field(default_factory=RequestTemplate)

    delay: Delay | None = None
    """How long the upstream waits before it answers."""

    faults: Faults | None = None
    """What the upstream does instead of a good answer."""

    reading: Reading = field(default_factory=Reading)
    load: Load = field(default_factory=Load)

    cold: Switch = False
    """Whether a trial is one request from a new interpreter, without a warm-up.

    Its time includes the imports.
    """

    limits: Limits = field(default_factory=Limits)

    shards: Annotated[
        Whole, ValueRange(1, MOST_SHARDS, "processes that divide a trial")
    ] = 1

    seed: Annotated[Whole, ValueRange(-(2**63), MOST_SEED, "a seed")] = 1
    """Workloads with different seeds have independent random draws."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "load", self._with_default_length())
        if self.stream is not None:
            object.__setattr__(self, "request", self._with_call(self.stream))
            if self.stream.marks:
                object.__setattr__(self, "stream", self._with_events(self.stream))

    def _with_default_length(self) -> Load:
        load = self.load
        if self.cold:
            load = replace(load, warmup=0)
        elif self.stream is not None and load.warmup == DEFAULT_WARM_UP:
            load = replace(load, warmup=_WARM_UP_STREAMS)
        if load.requests is None and load.duration is None and not self.keeps_times:
            requests = _DEFAULT_REQUESTS
            if self.cold:
                requests = 1
            elif self.stream is not None:
                requests = _DEFAULT_STREAMS
            load = replace(load, requests=requests)
        return load

    def _with_call(self, stream: EventStream) -> RequestTemplate:
        """Return the request of the format's API, where none is given."""
        request = self.request
        method, path, body = default_call(stream.format)
        if body is not None:
            if request.method == RequestTemplate.method:
                request = replace(request, method=method)
            request = replace(request, body=request.body or body)
        if request.path == RequestTemplate.path and (stream.marks or body is not None):
            request = replace(request, path=path)
        return request

    def _with_events(self, stream: EventStream) -> EventStream:
        events = 1 if self.cold else DEFAULT_EVENTS
        return replace(
            stream,
            first=DEFAULT_FIRST if stream.first is None else stream.first,
            every=DEFAULT_EVERY if stream.every is None else stream.every,
            events=events if stream.events is None else stream.events,
        )

    @property
    def keeps_times(self) -> bool:
        """Whether recorded requests are sent at their recorded times."""
        return self.replay is not None and self.replay.times

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


# Names without parts, as options and experiment files have them

PARTS: Mapping[str, type[Any]] = {
    "stream": EventStream,
    "replay": Replay,
    "request": RequestTemplate,
    "reading": Reading,
    "load": Load,
    "limits": Limits,
}
_NEEDED = {
    "stream": (
        "format",
        "only a stream has it; name the format of its events with `stream`",
    ),
    "replay": (
        "file",
        "only recorded requests have it; set `replay` too, or leave it out",
    ),
}
"""Part that a workload may lack → the field that makes one, and what to do."""

_OTHER_NAMES = {
    ("stream", "format"): "stream",
    ("stream", "options"): "stream_options",
    ("replay", "file"): "replay",
    ("replay", "sha256"): "replay_sha256",
    ("replay", "times"): "replay_times",
}


def _list_fields() -> dict[str, tuple[str | None, str]]:
    found: dict[str, tuple[str | None, str]] = {}
    for own in fields(Workload):
        if own.name not in PARTS:
            found[own.name] = None, own.name
            continue
        for one in fields(PARTS[own.name]):
            place = own.name, one.name
            found[_OTHER_NAMES.get(place, one.name)] = place
    return found


FIELDS: Mapping[str, tuple[str | None, str]] = _list_fields()
"""Name of a field → its part (None: the workload itself), and its name there."""

NOT_MEASURED = frozenset({"deadline", "replay"})
"""Fields that change no figure of a finished trial.

Recorded requests are compared by their digest, not their path.
"""


def name_of(key: FieldKey) -> FieldKey:
    """Return the path of a field of a document with parts as the name of the field,
    and what follows it.
    """
    for name, (part, own) in FIELDS.items():
        place = (own,) if part is None else (part, own)
        if tuple(key[: len(place)]) == place:
            return (name, *key[len(place) :])
    return key


def names_of(*parts: str) -> frozenset[str]:
    """Return the names of all fields of these parts."""
    return frozenset(name for name, (part, _) in FIELDS.items() if part in parts)


def nest(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of fields, by name, as a document with parts.

    Raise FieldError for a field of a stream or of recorded requests without these.
    """
    document: dict[str, Any] = {}
    for name, value in values.items():
        part, key = FIELDS[name]
        if part is None:
            document[key] = value
        else:
            document.setdefault(part, {})[key] = value
    for part, (needed, advice) in _NEEDED.items():
        own = document.get(part, {})
        if own.get(needed) is not None:
            continue
        for key, value in own.items():
            if value != getattr(PARTS[part], key, None):
                name = _OTHER_NAMES.get((part, key), key)
                raise FieldError([name], advice)
        document[part] = None
    return document


def make_workload(**values: Any) -> Workload:
    """Return the workload of these fields, by name. Their types are not checked.

    Raise FieldError as `nest`.
    """
    document = nest(values)
    for part, cls in PARTS.items():
        if document.get(part) is not None:
            document[part] = cls(**document[part])
    return Workload(**document)


def flatten(workload: Workload) -> dict[str, Any]:
    """Return the value of each field by its name, and defaults of missing parts."""
    return {name: value_of(workload, name) for name in FIELDS}


def value_of(workload: Workload, name: str) -> Any:
    """Return the value of a field by its name."""
    part, key = FIELDS[name]
    if part is None:
        return getattr(workload, key)
    found = getattr(workload, part)
    if found is None:
        return getattr(PARTS[part], key, None)
    return getattr(found, key)


def change(workload: Workload, **values: Any) -> Workload:
    """Return the workload with other values of these fields, by name."""
    return make_workload(**{**flatten(workload), **values})


def first_beyond(workload: Workload, able: Collection[str]) -> str | None:
    """Return the first field with another value than the default that is not among
    those that a client is able to do; None if there is no such field.
    """
    plain = Workload()
    return next(
        (
            name
            for name in FIELDS
            if name not in able and value_of(workload, name) != value_of(plain, name)
        ),
        None,
    )


DONE_BY_LAB = (
    names_of("load", "limits")
    | {"path", "delay", "faults", "parse", "expect", "chunk_size", "cold"}
    | {"shards", "seed"}
) - {"timeout"}
"""Fields that the lab carries out itself, with a client that only gets URLs."""


def identify(workload: Workload) -> str:
    """Return eight characters that are equal for workloads whose figures can be
    compared.
    """
    text = "\n".join(
        f"{name}={value}"
        for name, value in flatten(workload).items()
        if name not in NOT_MEASURED | {"seed", "shards"}
    )
    return hashlib.sha256(text.encode()).hexdigest()[:8]


# Variants


def take_share(workload: Workload, index: int, in_flight: int) -> ShardWorkload:
    """Return the part of a workload for one shard.

    `in_flight`: the concurrency of all shards together.
    """
    load = replace(
        workload.load, concurrency=divide_evenly(in_flight, index, workload.shards)
    )
    is_closed = load.rate is None and load.stages is None and not workload.keeps_times
    if load.requests is not None and is_closed:
        requests = divide_evenly(load.requests, index, workload.shards)
        load = replace(load, requests=requests)
    own = {one.name: getattr(workload, one.name) for one in fields(Workload)}
    own["load"] = load
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


# Delays


def delay_of(workload: Workload) -> Callable[[int], float] | None:
    """Return a function from k to the delay in seconds that request k asks of the
    upstream, or None without a delay.

    That of a stream is the time until its last event; the mean one if it is drawn.
    """
    stream = workload.stream
    if (
        stream is not None
        and stream.first is not None
        and stream.every is not None
        and stream.events is not None
    ):
        seconds = stream.first.mean + (stream.events - 1) * stream.every.mean
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
    delays = [workload.delay]
    if workload.stream is not None:
        delays += [workload.stream.first, workload.stream.every]
    return (
        NUMBER_FIELD in workload.request.path
        or workload.faults is not None
        or any(delay is not None and delay.form for delay in delays)
        or encodes_each(workload)
        or workload.replay is not None
    )


def encodes_each(workload: Workload) -> bool:
    """Return whether the body is encoded for each request, inside the timed span."""
    request = workload.request
    return request.encode == "each" and request.payload_size is not None
