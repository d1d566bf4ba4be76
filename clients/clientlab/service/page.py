"""The web page, and the forms on it."""

from __future__ import annotations

import asyncio
import os
from functools import cache
from typing import Any

import jinja2
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import ValidationError

from clientlab.errors import LabError
from clientlab.experiments.checks import check_served
from clientlab.experiments.file import bundled
from clientlab.reports import as_html
from clientlab.results.plan import Plan
from clientlab.service.api import FoundRun, problems, state_of
from clientlab.service.lab import Lab, ThisLab, lab_of
from clientlab.service.middleware import first_line, refusal
from clientlab.service.plans import offered_plan
from clientlab.service.request_checks import Form, WrongKey, read_form
from clientlab.service.schemas import Start
from clientlab.service.standings import standings_of
from clientlab.testbeds.compose import check_link, check_plain

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
_KEY = {"key": {"type": "string", "description": "the page's key, from the link in the lab's log"}}


def _form(schema: dict[str, Any]) -> dict[str, Any]:
    """The description of a form with these fields and the key."""
    fields = {"type": "object"} | schema
    fields["properties"] = fields.get("properties", {}) | _KEY
    fields["required"] = [*fields.get("required", []), *_KEY]
    return {"requestBody": {"required": True, "content": {"application/x-www-form-urlencoded": {"schema": fields}}}}


_FIELDS = Start.model_json_schema()
_START_FORM = _form(
    _FIELDS | {"properties": {name: one for name, one in _FIELDS["properties"].items() if name != "strategies"}}
)
_BUTTON = _form({})

router = APIRouter(default_response_class=HTMLResponse)


@router.get("/")
async def page(request: Request, lab: ThisLab) -> Response:
    """The page: progress, runs, the form that starts one."""
    return await _page(request, lab)


@router.post("/start", status_code=303, responses=problems(403, 409, 413, 422), openapi_extra=_START_FORM)
async def start(request: Request, lab: ThisLab, fields: Form) -> Response:
    """The page's form that starts a run."""
    try:
        lab.start(Start.model_validate({name: value for name, value in fields.items() if value}))
    except ValidationError as error:
        return await _page(request, lab, first_line(error), 422)
    except LabError as error:
        return await _page(request, lab, str(error), 409)
    return RedirectResponse("/", 303)


@router.post(
    "/stop", status_code=303, responses=problems(403, 409), dependencies=[Depends(read_form)], openapi_extra=_BUTTON
)
async def stop(request: Request, lab: ThisLab) -> Response:
    """The page's button that stops the run in progress."""
    try:
        await lab.run_manager.stop()
    except LabError as error:
        return await _page(request, lab, str(error), 409)
    return RedirectResponse("/", 303)


@router.get("/runs/{run}", responses=problems(404))
async def report(found: FoundRun) -> Response:
    """A run's report: the page that `clientlab report --html` writes, which brings its own style."""
    text = await asyncio.to_thread(as_html.render, found)
    return HTMLResponse(text, headers={"Content-Security-Policy": _REPORT_POLICY})


@router.post(
    "/runs/{run}/again",
    status_code=303,
    responses=problems(403, 404, 409),
    dependencies=[Depends(read_form)],
    openapi_extra=_BUTTON,
)
async def again(request: Request, lab: ThisLab, found: FoundRun) -> Response:
    """The page's button that runs a run again."""
    try:
        lab.run_manager.again(found)
    except LabError as error:
        return await _page(request, lab, str(error), 409)
    return RedirectResponse("/", 303)


async def on_wrong_key(request: Request, error: Exception) -> Response:
    """Answer a form without the page's key with the page, which then has a field for it."""
    if not isinstance(error, WrongKey):
        raise error
    refusal(request, error.status_code, error.detail)  # for the log and the page
    return await _page(request, lab_of(request), error.detail, error.status_code)


async def _page(request: Request, lab: Lab, problem: str = "", status: int = 200) -> Response:
    found, left_out = await asyncio.to_thread(_experiments)
    rows = await asyncio.to_thread(lab.run_index.rows)
    standings = await asyncio.to_thread(standings_of, lab.run_manager.run)
    text = _TEMPLATES.get_template("page.html").render(
        state=state_of(request, lab),
        standings=standings,
        rows=rows,
        experiments=found,
        left_out=left_out,
        problem=problem,
        wrong_key=status == 403,
        grafana=lab.grafana,
    )
    return HTMLResponse(text, status)


@cache
def _experiments() -> tuple[dict[str, Plan], dict[str, str]]:
    """The bundled experiments that the service can run, and why it can't the others; read once, for they are long."""
    can: dict[str, Plan] = {}
    cannot: dict[str, str] = {}
    for name, path in bundled().items():
        plan = offered_plan(path)
        try:
            check_served(plan)
            check_plain(arm.upstream for arm in plan.arms)
            check_link(os.environ, plan.links)
        except LabError as error:
            cannot[name] = str(error)
        else:
            can[name] = plan
    return can, cannot
