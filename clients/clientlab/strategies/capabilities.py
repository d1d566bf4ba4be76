"""Capabilities of clients that only some workloads need. A client class shows them by its methods and attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clientlab.errors import FieldError
from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.known import client_spec, executor_spec
from clientlab.strategies.pairs import Strategy
from clientlab.strategies.resolve import load
from clientlab.workload.workload import Workload


@dataclass(frozen=True)
class Capability:
    """`field` and `value` of a workload need it. `lacks` describes a client without it."""

    field: str
    value: str
    lacks: str
    needed: Callable[[Workload], bool]
    has: Callable[[Any], bool]


CAPABILITIES = (
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
    client = load(client_spec(strategy.client).import_path)
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
