"""The API: for workers their turns, for programs the runs. `ROUTES` is what is served and what is documented."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web
from pydantic import BaseModel

from clientlab.errors import LabError
from clientlab.runs.document import Run
from clientlab.service import guard
from clientlab.service.guard import Answered
from clientlab.service.lab import LAB, Lab
from clientlab.service.shapes import Asking, Beat, BeatAnswer, Result, ResultAnswer, RunRow, Start, Started, State
from clientlab.work.order import Turn

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Route:
    """One thing that can be asked. `body` and `answer` are shapes, or words for what is none."""

    method: str
    path: str
    handler: Handler
    says: str
    body: type[BaseModel] | None = None
    answer: type[BaseModel] | str = "text/plain"
    many: bool = False  # the answer is a list
    form: bool = False  # the body comes from a form
    token: bool = False
    refusals: tuple[int, ...] = ()


def _answer(shape: BaseModel) -> web.Response:
    return web.Response(body=shape.model_dump_json().encode(), content_type="application/json")


async def turn(request: web.Request) -> web.Response:
    """A worker's turn; it waits for it."""
    lab = _trusted(request)
    asking = await guard.read_shape(request, Asking)
    given = await lab.turns.ask(asking, lambda: request.transport is None or request.transport.is_closing())
    return web.Response(status=204) if given is None else _answer(given)


async def beat(request: web.Request) -> web.Response:
    """A trial is alive."""
    lab = _trusted(request)
    found = await guard.read_shape(request, Beat)
    return _answer(BeatAnswer(go_on=lab.turns.beat(found) or lab.conductor.will_give(found.run, found.order)))


async def result(request: web.Request) -> web.Response:
    """A trial has ended."""
    lab = _trusted(request)
    found = await guard.read_shape(request, Result, guard.RESULT_BODY)
    try:
        answer = await lab.turns.take(found) or _known(lab, found)
    except TimeoutError as error:
        raise Answered(503, "the run could not be saved in time; send the result again") from error
    if answer is None and lab.conductor.will_give(found.run, found.trial.order):
        raise Answered(503, "the run goes on in a moment; send the result again")
    if answer is None:
        raise Answered(409, f"trial {found.trial.order} of run {found.run!r} is not waited for")
    return _answer(answer)


def _known(lab: Lab, found: Result) -> ResultAnswer | None:
    """The answer to a result of a trial that the present run holds already."""
    run = lab.conductor.run
    if run is None or run.run != found.run or found.trial.order >= len(run.trials):
        return None
    held = run.trials[found.trial.order]
    if held == found.trial:
        return ResultAnswer(taken=True, says="taken before")
    return ResultAnswer(taken=False, says=f"the trial is {held.status} already ({held.reason or 'measured'})")


async def start(request: web.Request) -> web.Response:
    """Begin a run."""
    lab = _trusted(request)
    asked = await guard.read_shape(request, Start)
    try:
        return _answer(Started(run=lab.start(asked)))
    except LabError as error:
        raise guard.or_conflict(error) from error


async def state(request: web.Request) -> web.Response:
    """How far it is."""
    return _answer(state_of(request))


def state_of(request: web.Request) -> State:
    """How far the run is, and what was refused lately."""
    lately = request.app[guard.REFUSALS]
    return request.app[LAB].conductor.state().model_copy(update={"refusals": list(lately)})


async def runs(request: web.Request) -> web.Response:
    """The newest runs."""
    rows = await asyncio.to_thread(request.app[LAB].archive.rows)
    content = "[" + ",".join(row.model_dump_json() for row in rows) + "]"
    return web.Response(body=content.encode(), content_type="application/json")


async def one_run(request: web.Request) -> web.Response:
    """A run's document."""
    return _answer(await read_run(request))


async def read_run(request: web.Request) -> Run:
    """The run that the path names. Raises Answered (404)."""
    lab, name = request.app[LAB], request.match_info["run"]
    if name not in lab.store.names():
        raise Answered(404, f"there is no run {name!r}")
    try:
        return await asyncio.to_thread(lab.store.read, name)  # some megabytes may have to be parsed
    except LabError as error:
        raise Answered(404, str(error)) from error


def _trusted(request: web.Request) -> Lab:
    lab = request.app[LAB]
    guard.check_token(request, lab.token)
    return lab


_WRITTEN = (401, 413, 415, 422)
ROUTES = (
    Route(
        "POST", "/api/turns", turn, "Wait for a turn; 204 where none comes for a while", Asking, Turn,
        token=True, refusals=_WRITTEN,
    ),
    Route("POST", "/api/beats", beat, "Say that a trial is alive", Beat, BeatAnswer, token=True, refusals=_WRITTEN),
    Route(
        "POST", "/api/results", result, "Hand over a trial's result; as often as needed", Result, ResultAnswer,
        token=True, refusals=(*_WRITTEN, 409, 503),
    ),
    Route(
        "POST", "/api/runs", start, "Begin a run of a bundled experiment", Start, Started,
        token=True, refusals=(*_WRITTEN, 409),
    ),
    Route("GET", "/api/runs", runs, "The newest runs", answer=RunRow, many=True),
    Route("GET", "/api/runs/{run}", one_run, "A run's document", answer=Run, refusals=(404,)),
    Route("GET", "/api/state", state, "What the lab does now", answer=State),
)  # fmt: skip
