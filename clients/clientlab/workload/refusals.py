"""What makes a workload impossible: values out of range, and fields that contradict
each other.

`load.check_load` checks an open load.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from urllib.parse import quote, unquote_to_bytes

from clientlab.errors import FieldError
from clientlab.text import mask_text
from clientlab.workload.faults import Faults
from clientlab.workload.parts import BODY_FIELDS, EventStream
from clientlab.workload.streams import MOST_EVENTS, check_options
from clientlab.workload.values import check_bounds
from clientlab.workload.workload import (
    FIELDS,
    NUMBER_FIELD,
    PARTS,
    Workload,
    first_beyond,
    names_of,
    value_of,
)

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_NOT_IN_PATH = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9/?:@!$&'()*+,;=%._~\[\]-]")
_RESPELLED = re.compile(r"%..|['\[\]]")
_HEADER_VALUE = re.compile(r"[ -~\t]*")

_NOT_OF_STREAM = (
    "delay",
    "replay",
    "payload_size",
    "upload_size",
    "parse",
    "elapsed",
    "first_byte",
)


def check_workload(workload: Workload) -> None:
    """Raise FieldError for a workload that cannot be measured."""
    check_bounds(workload)
    for name in PARTS:
        part = getattr(workload, name)
        if part is not None:
            check_bounds(part)
    request = workload.request
    check_request_line(
        request.method, request.path.replace(NUMBER_FIELD, ""), request.headers
    )
    _check_end(workload)
    if workload.cold:
        _check_cold(workload)
    if workload.stream is not None:
        _check_stream(workload, workload.stream)
    if workload.faults is not None:
        _check_faults(workload, workload.faults)
    _check_bodies(workload)
    _check_reading(workload)
    if workload.replay is not None:
        _check_replay(workload)


def _check_end(workload: Workload) -> None:
    load, limits = workload.load, workload.limits
    if load.requests is not None and load.duration is not None:
        message = (
            "a trial ends after a number of requests or after a duration; leave out one"
            " of them"
        )
        raise FieldError(["requests"], message, also=["duration"])
    if limits.deadline is not None and limits.deadline <= (load.duration or 0.0):
        message = "write more than the trial needs, including its duration"
        raise FieldError(["deadline"], message, value=f"{limits.deadline:g}")
    if limits.request_limit is not None and limits.request_limit < limits.timeout:
        message = (
            "it must not be shorter than the timeout; write at least"
            f" {limits.timeout:g} s"
        )
        value = f"{limits.request_limit:g}"
        raise FieldError(["request_limit"], message, value=value, also=["timeout"])


def _check_cold(workload: Workload) -> None:
    only = {
        "replay_times": False,
        "duration": None,
        "rate": None,
        "stages": None,
        "requests": 1,
        "shards": 1,
        "faults": None,
    }
    for name, value in only.items():
        if value_of(workload, name) != value:
            message = (
                "a cold trial sends one request from a new interpreter; leave"
                f" `{name}` out"
            )
            raise FieldError([name], message, also=["cold"])
    if workload.load.connections == "warm":
        raise FieldError(
            ["connections"],
            "a cold trial opens its connection itself; leave it out",
            also=["cold"],
        )


def _check_stream(workload: Workload, stream: EventStream) -> None:
    for name in _NOT_OF_STREAM:
        if value_of(workload, name) not in (None, False):
            advice = "write `first`" if name == "delay" else "leave out one of them"
            message = f"a stream has no `{name}`; {advice}"
            raise FieldError(["stream"], message, also=[name])
    if workload.reading.read == "chunks":
        raise FieldError(
            ["read"], "a stream is read as it arrives; leave it out", also=["stream"]
        )
    every = stream.every
    if every is not None and not every.form and not every.values[0]:
        raise FieldError(
            ["every"], "the gap between events must be above 0; write 1ms or more"
        )
    requests = workload.load.requests
    if stream.events and requests and stream.events * requests > MOST_EVENTS:
        message = (
            f"a trial may have {MOST_EVENTS:,} events in all; write fewer requests or"
            " events"
        )
        raise FieldError(
            ["events"], message, also=["requests"], value=f"{stream.events:,}"
        )
    check_options(stream.options, stream.events or 1)


def _check_faults(workload: Workload, faults: Faults) -> None:
    if workload.stream is not None and faults.not_of_streams is not None:
        message = (
            f"a stream has no {faults.not_of_streams!r}; write reset, stall or outage"
        )
        raise FieldError(["faults"], message, also=["stream"])
    if workload.shards > 1:
        message = "a trial with faults is not divided; leave out one of them"
        raise FieldError(["faults"], message, also=["shards"])
    duration = workload.load.duration
    for state in faults.states:
        if duration is None:
            message = (
                f"{state}: nobody knows how long a number of requests takes; set a"
                " duration (-d)"
            )
            raise FieldError(["faults"], message, also=["requests"])
        if state.end > duration:
            message = f"{state} ends after the trial, which lasts {duration:g} s"
            raise FieldError(["faults"], message, also=["duration"])


def _check_bodies(workload: Workload) -> None:
    request = workload.request
    bodies = [name for name in BODY_FIELDS if getattr(request, name) is not None]
    if len(bodies) > 1:
        raise FieldError(
            bodies[:1], "a request has one body; leave out all but one", also=bodies[1:]
        )
    try:
        base64.b64decode(request.body_base64 or "", validate=True)
    except ValueError as error:
        raise FieldError(
            ["body_base64"], f"{error}; encode the bytes in base64"
        ) from error
    if request.upload == "stream" and request.upload_size is None:
        message = "there is nothing to send; set the number of bytes with `upload_size`"
        raise FieldError(["upload"], message, value="stream")


def _check_reading(workload: Workload) -> None:
    reading = workload.reading
    if reading.first_byte:
        streamed_by = "first_byte"
    elif reading.read == "chunks":
        streamed_by = "read"
    else:
        return
    for name in ("parse", "elapsed"):
        if getattr(reading, name):
            message = f"`{name}` needs a body that is read whole; leave out one of them"
            raise FieldError([name], message, also=[streamed_by])


def _check_replay(workload: Workload) -> None:
    template = names_of("request") - {"headers"}
    name = first_beyond(workload, set(FIELDS) - template)
    if name is not None:
        message = f"recorded requests have their own; leave out `{name}`"
        raise FieldError(["replay"], message, also=[name])


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
