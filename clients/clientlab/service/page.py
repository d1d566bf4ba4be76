"""The page for people, and the forms on it."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

import jinja2
from aiohttp import web
from pydantic import ValidationError

from clientlab.errors import LabError
from clientlab.homes.containers import check_plain
from clientlab.reports import html
from clientlab.runs.experiment import Experiment
from clientlab.runs.experiment_file import bundled, read_experiment
from clientlab.service import guard
from clientlab.service.api import Route, read_run, state_of
from clientlab.service.guard import Answered
from clientlab.service.lab import LAB
from clientlab.service.shapes import Start

_FOLDER = files("clientlab.service")
_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("clientlab.service"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FILES = {"lab.css": "text/css", "lab.js": "text/javascript"}


async def page(request: web.Request) -> web.Response:
    """Progress, runs, the form."""
    return await _page(request)


async def start(request: web.Request) -> web.Response:
    """The form that begins a run."""
    lab = request.app[LAB]
    fields = await _form(request)
    try:
        lab.start(Start.model_validate({name: value for name, value in fields.items() if value}))
    except ValidationError as error:
        return await _page(request, guard.first_line(error), 422)
    except LabError as error:
        return await _page(request, str(error), 409)
    raise web.HTTPSeeOther("/")


async def again(request: web.Request) -> web.Response:
    """The button that runs a run again."""
    await _form(request)
    run = await read_run(request)
    try:
        request.app[LAB].conductor.again(run)
    except LabError as error:
        return await _page(request, str(error), 409)
    raise web.HTTPSeeOther("/")


async def stop(request: web.Request) -> web.Response:
    """The button that ends the run in progress."""
    await _form(request)
    try:
        await request.app[LAB].conductor.stop()
    except LabError as error:
        return await _page(request, str(error), 409)
    raise web.HTTPSeeOther("/")


async def report(request: web.Request) -> web.Response:
    """A run's report: the page that `clientlab report --html` writes, which brings its own style."""
    text = await asyncio.to_thread(html.render, await read_run(request))
    response = web.Response(text=text, content_type="text/html")
    response.headers["Content-Security-Policy"] = _REPORT_POLICY
    return response


async def static(request: web.Request) -> web.Response:
    """Style and script: the page has none of its own."""
    name = request.match_info["name"]
    if name not in _FILES:
        raise Answered(404, f"there is no file {name!r}")
    return web.Response(body=(_FOLDER / "static" / name).read_bytes(), content_type=_FILES[name], charset="utf-8")


async def _page(request: web.Request, problem: str = "", status: int = 200) -> web.Response:
    lab = request.app[LAB]
    found, left_out = await asyncio.to_thread(_experiments)
    rows = await asyncio.to_thread(lab.archive.rows)
    return _rendered(
        "page.html", status, state=state_of(request), rows=rows, experiments=found, left_out=left_out, problem=problem,
        grafana=lab.grafana,
    )  # fmt: skip


@cache
def _experiments() -> tuple[dict[str, Experiment], dict[str, str]]:
    """The bundled experiments that the service can run, and why it can't the others; read once, for they are long."""
    can: dict[str, Experiment] = {}
    cannot: dict[str, str] = {}
    for name, path in bundled().items():
        experiment = read_experiment(path)
        try:
            check_plain(arm.upstream for arm in experiment.arms())
        except LabError as error:
            cannot[name] = str(error)
        else:
            can[name] = experiment
    return can, cannot


def _rendered(template: str, status: int, **values: Any) -> web.Response:
    text = _TEMPLATES.get_template(template).render(**values)
    return web.Response(text=text, status=status, content_type="text/html")


async def _form(request: web.Request) -> dict[str, str]:
    """The fields of a form of our own. Raises Answered."""
    guard.check_origin(request)
    content = await guard.read_body(request, guard.SMALL_BODY)
    try:
        return dict(parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=20))
    except ValueError as error:
        raise Answered(422, f"the form can't be read: {error}") from error


ROUTES = (
    Route("GET", "/", page, "The page: progress, runs, the form that starts one", answer="text/html"),
    Route(
        "POST", "/start", start, "The page's form", Start, "text/html", form=True, refusals=(403, 409, 413, 422),
    ),
    Route(
        "POST", "/stop", stop, "The page's button that ends the run", answer="text/html", form=True,
        refusals=(403, 409),
    ),
    Route("GET", "/runs/{run}", report, "A run's report", answer="text/html", refusals=(404,)),
    Route(
        "POST", "/runs/{run}/again", again, "The page's button that runs it again", answer="text/html", form=True,
        refusals=(403, 404, 409),
    ),
    Route("GET", "/static/{name}", static, "The page's style and script", refusals=(404,)),
)  # fmt: skip
