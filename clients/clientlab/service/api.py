"""The API: assignments, heartbeats and results of workers; runs and the lab's state for programs."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response

from clientlab.errors import LabError
from clientlab.judging.judgement import find_judged
from clientlab.results.document import Run
from clientlab.service.lab import Lab, ThisLab
from clientlab.service.request_checks import BEARER, RESULT_BODY, SMALL_BODY, worker_route
from clientlab.service.schemas import (
    AssignmentRequest,
    AssignmentResult,
    Heartbeat,
    HeartbeatAnswer,
    Problem,
    ResultAnswer,
    RunRow,
    Standings,
    Start,
    Started,
    State,
)
from clientlab.service.standings import standings_of
from clientlab.worker.assignment import Assignment


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route, for the API's description. Without "4XX", FastAPI describes errors of its own form."""
    return {"4XX": {"model": Problem}, **{status: {"model": Problem} for status in statuses}}


def _for_workers(limit: int) -> APIRouter:
    """Routes that take a body of at most `limit` bytes from those who know the token."""
    refusals = problems(401, 413, 415, 422)
    return APIRouter(route_class=worker_route(limit), dependencies=[Depends(BEARER)], responses=refusals)


workers = _for_workers(SMALL_BODY)
results = _for_workers(RESULT_BODY)
public = APIRouter(responses=problems())


@workers.post(
    "/api/assignments",
    response_model=Assignment,
    responses={204: {"description": "No assignment yet; poll again"}},
)
async def poll(request: Request, asking: AssignmentRequest, lab: ThisLab) -> Assignment | Response:
    """Wait for an assignment; 204 after a while without one."""
    return await lab.dispatcher.poll(asking, request.is_disconnected) or Response(status_code=204)


@workers.post("/api/heartbeats")
async def heartbeat(found: Heartbeat, lab: ThisLab) -> HeartbeatAnswer:
    """Report that a trial goes on."""
    return HeartbeatAnswer(wanted=lab.dispatcher.heartbeat(found) or lab.run_manager.will_give(found.run, found.order))


@results.post("/api/results", responses=problems(409, 503))
async def result(found: AssignmentResult, lab: ThisLab) -> ResultAnswer:
    """Send a trial's result. Sent again, it changes nothing."""
    try:
        answer = await lab.dispatcher.take(found) or _known(lab, found)
    except TimeoutError as error:
        raise HTTPException(503, "the run could not be saved in time; send the result again") from error
    if answer is None and lab.run_manager.will_give(found.run, found.trial.order):
        raise HTTPException(503, "the run goes on in a moment; send the result again")
    if answer is None:
        raise HTTPException(409, f"trial {found.trial.order} of run {found.run!r} is not waited for")
    return answer


def _known(lab: Lab, found: AssignmentResult) -> ResultAnswer | None:
    """The answer to a result of a trial that the present run holds already."""
    run = lab.run_manager.run
    if run is None or run.run != found.run or found.trial.order >= len(run.trials):
        return None
    held = run.trials[found.trial.order]
    if held == found.trial:
        return ResultAnswer(taken=True, message="taken before")
    return ResultAnswer(taken=False, message=f"the trial is {held.status} already ({held.reason or 'measured'})")


@workers.post("/api/runs", responses=problems(409))
async def start(wanted: Start, lab: ThisLab) -> Started:
    """Start a run of a bundled experiment."""
    try:
        return Started(run=lab.start(wanted))
    except LabError as error:
        raise HTTPException(409, str(error)) from error


@public.get("/api/runs")
async def runs(lab: ThisLab) -> list[RunRow]:
    """The newest runs."""
    return await asyncio.to_thread(lab.run_index.rows)


async def find_run(run: str, lab: ThisLab) -> Run:
    """The run that the path names. Raises HTTPException (404)."""
    if run not in lab.store.names():
        raise HTTPException(404, f"there is no run {run!r}")
    try:
        return await asyncio.to_thread(find_judged, lab.store, run)  # some megabytes may have to be parsed
    except LabError as error:
        raise HTTPException(404, str(error)) from error


FoundRun = Annotated[Run, Depends(find_run)]


@public.get("/api/runs/{run}", responses=problems(404))
async def one_run(found: FoundRun) -> Run:
    """A run's document."""
    return found


@public.get("/api/state")
async def state(request: Request, lab: ThisLab) -> State:
    """The state of the lab: its run in progress, its workers, and the last requests that it refused."""
    return state_of(request, lab)


@public.get("/api/standings")
async def standings(lab: ThisLab) -> Standings:
    """Who is ahead in the run in progress, or in the last one. It changes when a trial ends."""
    return await asyncio.to_thread(standings_of, lab.run_manager.run)


def state_of(request: Request, lab: Lab) -> State:
    """The state of the lab."""
    return lab.run_manager.state().model_copy(update={"refusals": list(request.app.state.refusals)})
