"""One call of a strategy, recorded in the process of the test."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import trio

from clientlab import strategies
from clientlab.conformance.server import Respond, counting_server
from clientlab.observing.samples import read_measured
from clientlab.trial.context import PeerAddress, TrialContext
from clientlab.trial.recorder import CallerFactory
from clientlab.trial.sample_log import process_notes
from clientlab.workload.workload import make_workload


class Call(NamedTuple):
    """How a call ended. `kind`: of its error, or nothing. `attempts`: at the server.
    `begun` and `opened`: connections, by the lab's count.
    """

    status: int
    kind: str
    seconds: float
    attempts: int
    begun: int
    opened: int


def call_once(name: str, respond: Respond, *, url: str = "", **workload: Any) -> Call:
    """Send one request with a strategy to a server that answers as `respond` says, or
    to another one.
    """
    strategy = strategies.find(name)
    strategies.check_settings(strategy)
    planned = make_workload(requests=1, concurrency=1, warmup=0, **workload)
    with counting_server(respond) as server, tempfile.TemporaryDirectory() as folder:
        address = PeerAddress(url or server.url)
        _send(CallerFactory(TrialContext(strategy, planned, address, folder)))
        samples = read_measured(Path(folder))
        (record,) = samples.records
        kind = next(iter(samples.errors), "")
        (note,) = process_notes(Path(folder))
        return Call(
            int(record["status"]),
            kind,
            float(record["seconds"]),
            len(server.seen),
            note.connections,
            note.opened,
        )


def _send(factory: CallerFactory) -> None:
    strategy = factory.context.strategy

    async def send_async() -> None:
        caller = await factory.aopen(1)
        await caller(0)
        await caller.close()

    if strategy.executor == "trio":
        trio.run(send_async)
    elif strategies.client_spec(strategy.client).kind == "asyncio":
        asyncio.run(send_async())
    else:
        caller = factory.open(1)
        caller(0)
        caller.close()
