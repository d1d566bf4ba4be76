"""The service as a web application, and as a process: a lab behind uvicorn, until a signal ends both."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import uvicorn
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles

from clientlab import __version__
from clientlab.results.document import Run
from clientlab.service import api, middleware, page, run_metrics
from clientlab.service.connections import BoundedProtocol, Connections, raise_open_files
from clientlab.service.entrance import Entrance
from clientlab.service.lab import Lab, LabSettings, ThisLab
from clientlab.service.request_checks import WrongKey
from clientlab.service.run_manager import RunManager

_operations = APIRouter(default_response_class=PlainTextResponse)


def application(lab: Lab, hosts: Iterable[str]) -> FastAPI:
    """The web application of a lab, for requests to these host names."""
    app = FastAPI(
        title="clientlab",
        version=__version__,
        description="The lab service: runs and reports for people and programs, assignments for workers.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # its scripts come from another site, which the page's policy forbids
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
        exception_handlers={
            WrongKey: page.on_wrong_key,
            HTTPException: middleware.on_http_error,
            RequestValidationError: middleware.on_invalid,
            ClientDisconnect: middleware.on_gone,
        },
    )
    app.state.lab = lab
    app.state.refusals = deque(maxlen=middleware.MOST_REFUSALS)
    app.state.registry = _registry(lab)
    app.add_middleware(middleware.PlainBodies)
    app.add_middleware(middleware.KnownHosts, hosts=hosts)
    app.add_middleware(middleware.SecurityHeaders)
    for router in (page.router, api.workers, api.results, api.public, _operations):
        app.include_router(router)
    app.mount("/static", StaticFiles(packages=[("clientlab.service", "static")]))
    return app


@_operations.get("/healthz")
async def healthz() -> PlainTextResponse:
    """Whether the service answers."""
    return PlainTextResponse("ok\n")


@_operations.get("/metrics")
async def metrics(request: Request, lab: ThisLab) -> Response:
    """Metrics of the lab, of its run in progress and of its newest finished runs, for Prometheus."""
    finished = await asyncio.to_thread(lab.run_index.metrics)
    live = generate_latest(request.app.state.registry)
    return Response(live + finished, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


def _registry(lab: Lab) -> CollectorRegistry:
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    registry.register(_Present(lab.run_manager))
    return registry


class _Present(Collector):
    """The run in progress, or the last one: how far it is, and the figures of its trials so far."""

    def __init__(self, run_manager: RunManager) -> None:
        self._run_manager = run_manager
        self._filled: tuple[Run, list[Metric]] | None = None  # a run changes with each trial, and not at each scrape

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        family = run_metrics.schedule()
        state, run = self._run_manager.state(), self._run_manager.run
        if state.run is not None and state.experiment is not None:
            left = state.planned - state.done - state.failed
            for name, count in (("done", state.done), ("failed", state.failed), ("left", left)):
                family.add_metric([state.run, state.experiment, name], count)
        yield family
        if run is not None:
            if self._filled is None or self._filled[0] is not run:
                found = run_metrics.families("present")
                run_metrics.fill(found, run)
                self._filled = run, list(found.values())
            yield from self._filled[1]


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
        with middleware.limited() as self._log_limit:
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
