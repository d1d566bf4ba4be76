"""The service as a web application: its routes in one list, its parts, its metrics."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from clientlab.runs.experiment import Experiment
from clientlab.runs.store import Store
from clientlab.service import api, figures, guard, openapi, page
from clientlab.service.api import Route
from clientlab.service.archive import Archive
from clientlab.service.conductor import Conductor
from clientlab.service.lab import LAB, Lab
from clientlab.service.turns import Bounds, Turns

_log = logging.getLogger("clientlab.service")
_DOCUMENT = web.AppKey("document", dict[str, object])
_REGISTRY = web.AppKey("registry", CollectorRegistry)


@dataclass(frozen=True)
class Settings:
    """How the service was asked to serve. `first`: what to begin where no run is unfinished, and its command."""

    folder: Path
    token: str
    grafana: str
    first: tuple[Experiment, str] | None
    programs: dict[str, str]
    bounds: Bounds
    hosts: frozenset[str] = guard.known_hosts("", "")


async def healthz(request: web.Request) -> web.Response:  # noqa: ARG001
    """Whether it answers."""
    return web.Response(text="ok\n")


async def metrics(request: web.Request) -> web.Response:
    """The service's own metrics, the run in progress, and the newest finished runs."""
    finished = await asyncio.to_thread(request.app[LAB].archive.metrics)
    live = generate_latest(request.app[_REGISTRY])
    return web.Response(
        body=live + finished,
        headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
    )


async def description(request: web.Request) -> web.Response:
    """The API's description."""
    return web.json_response(request.app[_DOCUMENT])


ROUTES = (
    *page.ROUTES,
    *api.ROUTES,
    Route("GET", "/api/openapi.json", description, "This description", answer="application/json"),
    Route("GET", "/healthz", healthz, "Whether the service answers"),
    Route("GET", "/metrics", metrics, "Metrics of the lab and of its newest finished runs, for Prometheus"),
)


def application(settings: Settings) -> web.Application:
    """The service, which goes on with its unfinished run, or begins the first, as soon as it runs."""
    made = web.Application(middlewares=[guard.headers, guard.problems, guard.hosts(settings.hosts)])
    made[guard.REFUSALS] = deque(maxlen=guard.MOST_REFUSALS)
    made[_DOCUMENT] = openapi.document(ROUTES)
    made[_REGISTRY] = CollectorRegistry()
    for route in ROUTES:
        made.router.add_route(route.method, route.path, route.handler)

    async def running(app: web.Application) -> AsyncIterator[None]:
        lab = app[LAB] = _lab(settings)
        registry = app[_REGISTRY]
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        registry.register(_Present(lab.conductor))
        if lab.conductor.resume() is None and settings.first is not None:
            lab.conductor.start(*settings.first)
        yield
        await lab.conductor.shut_down()

    made.cleanup_ctx.append(running)
    return made


def _lab(settings: Settings) -> Lab:
    store = Store(settings.folder)
    turns = Turns(settings.bounds)
    asked = "" if settings.first is None else settings.first[0].name
    conductor = Conductor(store, turns, settings.programs, _log.info, asked)
    return Lab(store, turns, conductor, Archive(store, _log.warning), settings.token, settings.grafana)


class _Present(Collector):
    """The run in progress, or the last one: how far it is, and the figures of its trials so far."""

    def __init__(self, conductor: Conductor) -> None:
        self._conductor = conductor

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "clientlab_schedule_trials",
            "Trials of the run in progress, or of the last one.",
            labels=("run", "experiment", "state"),
        )
        state, run = self._conductor.state(), self._conductor.run
        if state.run is not None and state.experiment is not None:
            left = state.planned - state.done - state.failed
            for name, count in (("done", state.done), ("failed", state.failed), ("left", left)):
                family.add_metric([state.run, state.experiment, name], count)
        yield family
        if run is not None:
            found = figures.families("present")
            figures.fill(found, run)
            yield from found.values()
