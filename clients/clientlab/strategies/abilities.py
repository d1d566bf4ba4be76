"""What a workload may ask of a client beyond sending; the client's class says it by methods, or by refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clientlab.errors import LabError
from clientlab.strategies.clients import CLIENTS
from clientlab.strategies.lookup import load
from clientlab.strategies.pairs import Strategy
from clientlab.strategies.plugins import client_row, executor_row
from clientlab.workload import Workload


@dataclass(frozen=True)
class Ability:
    """`option` asks for it, `lacks` says what a client without it does not do."""

    option: str
    lacks: str
    asked: Callable[[Workload], bool]
    has: Callable[[Any], bool]


_ABILITIES = (
    Ability(
        "--read chunks",
        "reads no body in chunks",
        lambda workload: workload.read == "chunks",
        lambda client: hasattr(client, "stream"),
    ),
    Ability(
        "--upload stream",
        "streams no upload of known length",
        lambda workload: workload.upload == "stream",
        lambda client: getattr(client, "streams_uploads", True),
    ),
    Ability(
        "--elapsed",
        "does not measure its requests itself",
        lambda workload: workload.elapsed,
        lambda client: hasattr(client, "timed"),
    ),
)


def check_abilities(strategy: Strategy, workload: Workload) -> None:
    """Raises LabError where the workload asks for what the strategy's client can't do."""
    client = load(client_row(strategy.client).place)
    if hasattr(client, "refuses"):
        if reason := client.refuses(workload):
            raise LabError(f"strategy {strategy.name!r}: {client.program} {reason}")
        return
    asked = [ability for ability in _ABILITIES if ability.asked(workload)]
    if asked and executor_row(strategy.executor).sends:
        raise LabError(
            f"{asked[0].option}: strategy {strategy.name!r} sends whole bodies by its executor {strategy.executor}; "
            f"run its client {strategy.client} with another"
        )
    for ability in asked:
        if not ability.has(client):
            able = ", ".join(_clients_with(ability))
            raise LabError(f"{ability.option}: strategy {strategy.name!r} {ability.lacks}; clients that can are {able}")


def _clients_with(ability: Ability) -> list[str]:
    """Names of those whose library is installed."""
    names = []
    for row in CLIENTS.values():
        try:
            client = load(row.place)
        except ModuleNotFoundError:
            continue  # not installed, so it can't be what is chosen instead
        if ability.has(client):
            names.append(row.name)
    return names
