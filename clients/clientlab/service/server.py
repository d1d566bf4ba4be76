"""The service as a process: a lab behind uvicorn, until a signal ends both."""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable, Iterable

import uvicorn

from clientlab.service.app import application
from clientlab.service.lab import Lab, LabSettings

_GRACE_SECONDS = 1


async def serve(
    settings: LabSettings, hosts: Iterable[str], listener: socket.socket, started: Callable[[], None]
) -> None:
    """Serve until SIGTERM or SIGINT. `started` is called when requests are answered. Raises LabError."""
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
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
    """uvicorn, which tells when it has started, and ends the polls of workers before it waits for requests to end."""

    def __init__(self, lab: Lab, hosts: Iterable[str], started: Callable[[], None]) -> None:
        config = uvicorn.Config(
            application(lab, hosts),
            http="h11",
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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._lab.dispatcher.close()
        await super().shutdown(sockets)
