"""Capabilities of clients that only some workloads need. A client class shows them by its methods and attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clientlab.errors import FieldError
from clientlab.strategies.clients import CLIENTS, EVERY_CLIENT
from clientlab.strategies.known import client_spec, executor_spec, load
from clientlab.strategies.pairs import Strategy
from clientlab.strategies.retrying import retries
from clientlab.strategies.specs import ClientSpec
from clientlab.workload.workload import Workload


@dataclass(frozen=True)
class Capability:
    """`field` and `value` of a workload need it. `lacks` describes a client without it."""

    field: str
    value: str
    lacks: str
    needed: Callable[[Workload], bool]
    has: Callable[[Any], bool]


STREAM = "stream"
"""The field of a workload whose responses are read event by event."""

CAPABILITIES = (
    Capability(
        STREAM,
        "",
        "reads no stream of events",
        lambda workload: workload.stream is not None,
        lambda client: hasattr(client, "events"),
    ),
    Capability(
        "read",
        "chunks",
        "reads no body in chunks",
        lambda workload: workload.read == "chunks",
        lambda client: hasattr(client, "stream"),
    ),
    Capability(
        "upload",
        "stream",
        "streams no upload of known length",
        lambda workload: workload.upload == "stream",
        lambda client: getattr(client, "streams_uploads", True),
    ),
    Capability(
        "elapsed",
        "",
        "does not measure its requests itself",
        lambda workload: workload.elapsed,
        lambda client: hasattr(client, "timed"),
    ),
)


def check_capabilities(strategy: Strategy, workload: Workload) -> None:
    """Raises FieldError, with a field of the workload, where the strategy's client cannot do the workload."""
    spec = client_spec(strategy.client)
    client = load(spec.import_path)
    _check_stream(strategy, spec, workload)
    if retries(strategy):
        _check_retries(strategy, workload)
    if hasattr(client, "refuses"):
        if refusal := client.refuses(workload):
            field, reason = refusal
            raise FieldError([field], f"strategy {strategy.name!r}: {client.program} {reason}")
        return
    for capability in CAPABILITIES:
        if not capability.needed(workload):
            continue
        if executor_spec(strategy.executor).drives_client:
            raise FieldError(
                [capability.field],
                f"strategy {strategy.name!r} sends whole bodies by its executor {strategy.executor}; "
                f"run its client {strategy.client} with another executor",
                value=capability.value,
            )
        if not capability.has(client):
            able = ", ".join(_clients_with(capability))
            message = f"strategy {strategy.name!r} {capability.lacks}; clients that can are {able}"
            raise FieldError([capability.field], message, value=capability.value)


def _check_retries(strategy: Strategy, workload: Workload) -> None:
    """Raises FieldError where a request is not read as a whole: what an attempt has handed over cannot come again."""
    for field, value in ((STREAM, workload.stream), ("read", workload.read != "whole"), ("elapsed", workload.elapsed)):
        if value:
            message = (
                f"strategy {strategy.name!r} sends requests again, which needs bodies that are read whole by `send`"
            )
            raise FieldError([field], f"{message}; leave out one of them")


def _check_stream(strategy: Strategy, spec: ClientSpec, workload: Workload) -> None:
    """Raises FieldError for a stream that the client cannot read, and for no stream of one that reads nothing else."""
    stream = workload.stream
    if stream is None:
        if spec.streams_only:
            formats = " or ".join(spec.stream_formats) or "a format"
            message = f"strategy {strategy.name!r} reads only streams; set `stream` to {formats}"
            if other := _nearest(spec, lambda one: not one.streams_only):
                message += f", or run {other}"
            raise FieldError([STREAM], message)
        return
    if executor_spec(strategy.executor).drives_client:
        message = f"sends whole bodies by its executor {strategy.executor}; run its client {spec.name} with another one"
        raise FieldError([STREAM], f"strategy {strategy.name!r} {message}", value=stream)
    if not reads(spec, stream):
        able = _nearest(spec, lambda one: reads(one, stream))
        reason = f"reads {', '.join(spec.stream_formats)}" if spec.stream_formats else "reads no stream of events"
        raise FieldError([STREAM], f"strategy {strategy.name!r} {reason}; one that can is {able}", value=stream)


def reads(spec: ClientSpec, stream: str) -> bool:
    """Whether the client reads streams of this format. False if its library is not installed."""
    try:
        can = hasattr(load(spec.import_path), "events")
    except ModuleNotFoundError:
        return False
    return can and (not spec.stream_formats or stream in spec.stream_formats)


def _nearest(spec: ClientSpec, fits: Callable[[ClientSpec], bool]) -> str | None:
    """The name of a client that fits: of the same library if there is one, and of the same kind."""
    fitting = [one for one in EVERY_CLIENT.values() if not one.program and one.policy != "per call" and fits(one)]
    libraries = {spec.distribution, *spec.needs} - {"python"}

    def distance(one: ClientSpec) -> tuple[bool, bool, bool, bool]:
        return (
            not libraries & {one.distribution, *one.needs},
            one.kind != spec.kind,
            one.http != spec.http,
            one.streams_only,
        )

    return min(fitting, key=distance).name if fitting else None


def _clients_with(capability: Capability) -> list[str]:
    """Names of the installed clients that have it."""
    names = []
    for spec in CLIENTS.values():
        try:
            client = load(spec.import_path)
        except ModuleNotFoundError:
            continue  # not installed, so no alternative
        if capability.has(client):
            names.append(spec.name)
    return names
