"""The service as a process: a lab behind uvicorn, until a signal ends both."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable, Iterable
from typing import Any

import uvicorn

from clientlab.service import log_limit
from clientlab.service.app import application
from clientlab.service.connections import BoundedProtocol, Connections, raise_open_files
from clientlab.service.entrance import Entrance
from clientlab.service.lab import Lab, LabSettings

_GRACE_SECONDS = 1
_TICKS = 5
"""Of uvicorn's loop, a tenth of a second each, between two looks for slow connections."""


async def serve(
    settings: LabSettings, hosts: Iterable[str], listener: socket.socket, started: Callable[[], None]
) -> None:
    """Serve until SIGTERM or SIGINT. `started` is called when requests are answered. Raises LabError."""
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    raise_open_files()
    lab = Lab.begin(settings)
    try:
        server = LabServer(lab, hosts, started)
        _ignore_signals()
        await server.serve([listener])
    finally:
        await lab.run_manager.shut_down()


def _ignore_signals() -> None:
    """Let the process end with code 0: uvicorn handles a signal, and sends it to the process again at its end."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


class LabServer(uvicorn.Server):
    """uvicorn with bounds. It tells when it has started, and ends the polls of workers before it waits for requests."""

    def __init__(self, lab: Lab, hosts: Iterable[str], started: Callable[[], None]) -> None:
        self.connections = Connections()
        config = uvicorn.Config(
            application(lab, hosts),
            http=self.connections.protocol(),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # nobody may choose the address that the log names
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        super().__init__(config)
        self._lab = lab
        self._tell = started

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        with log_limit.limited() as self._log_limit:
            await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])  # the entrance accepts connections
        self._entrance = Entrance(sockets or [], self._protocol, self.connections)
        self._entrance.open()
        self._tell()

    def _protocol(self) -> BoundedProtocol:
        made: Any = self.config.http_protocol_class
        protocol: BoundedProtocol = made(self.config, self.server_state, self.lifespan.state)
        return protocol

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS == 0:
            self._entrance.look()
            self.connections.look()
            self._log_limit.look()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._lab.dispatcher.close()
        self._entrance.close()
        await super().shutdown(sockets)
