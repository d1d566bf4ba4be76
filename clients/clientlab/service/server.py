"""The service as a web application, and as a process: a lab behind uvicorn, until a signal ends both."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from starlette.exceptions import HTTPException

from clientlab.results.document import Run
from clientlab.service import api, run_metrics
from clientlab.service.lab import Lab, LabSettings, ThisLab
from clientlab.service.run_manager import RunManager

_operations = APIRouter(default_response_class=PlainTextResponse)


def application(lab: Lab) -> FastAPI:
    """Return the web application of a lab."""
    app = FastAPI(
        openapi_url=None,
        exception_handlers={HTTPException: _answer_http_error, RequestValidationError: _answer_invalid},
    )
    app.state.lab = lab
    app.state.registry = _registry(lab)
    for router in (api.workers, api.public, _operations):
        app.include_router(router)
    return app


async def _answer_http_error(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    return JSONResponse({"error": error.detail}, error.status_code)


async def _answer_invalid(_request: Request, error: Exception) -> JSONResponse:
    """Name the first field that does not fit its schema."""
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"] if part != "body")
    return JSONResponse({"error": f"{field or 'body'}: {first['msg']}"}, 422)


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


async def serve(settings: LabSettings, listener: socket.socket, started: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT. `started` is called when requests are answered. Raises LabError."""
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    lab = Lab.begin(settings)
    try:
        server = LabServer(lab, started)
        _ignore_signals()
        await server.serve([listener])
    finally:
        await lab.run_manager.shut_down()


def _ignore_signals() -> None:
    """Let the process end with code 0: uvicorn handles a signal, and sends it to the process again at its end."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


class LabServer(uvicorn.Server):
    """uvicorn that reports when it has started, and ends the polls of workers before it waits for requests."""

    def __init__(self, lab: Lab, started: Callable[[], None]) -> None:
        config = uvicorn.Config(
            application(lab),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
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
