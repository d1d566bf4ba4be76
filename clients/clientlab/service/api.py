"""The API: assignments, heartbeats, meetings and results of workers; runs and the lab's state for programs."""

from __future__ import annotations

import asyncio
import hmac
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, SkipValidation, ValidationError

from clientlab.errors import LabError
from clientlab.judging.judgement import find_judged
from clientlab.results.document import Run
from clientlab.results.shard import ShardReport
from clientlab.results.trial import Trial
from clientlab.service.given_trial import NoMeeting
from clientlab.service.lab import Lab, ThisLab
from clientlab.service.schemas import (
    AssignmentRequest,
    AssignmentResult,
    Heartbeat,
    HeartbeatAnswer,
    LabTime,
    MeetingAnswer,
    MeetingRequest,
    Problem,
    ResultAnswer,
    RunRow,
    Start,
    Started,
    State,
)
from clientlab.service.workers import TooManyWorkers
from clientlab.worker.assignment import Assignment


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route, for the API's description. Without "4XX", FastAPI describes errors of its own form."""
    return {"4XX": {"model": Problem}, **{status: {"model": Problem} for status in statuses}}


async def check_token(
    lab: ThisLab, given: Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]
) -> None:
    """Raise HTTPException (401) without the workers' token. A service without a token trusts everybody."""
    if lab.token and not (given and hmac.compare_digest(given.credentials.encode(), lab.token.encode())):
        raise HTTPException(401, "wrong token: give the worker the lab's own CLIENTLAB_TOKEN")


_PARSER = ThreadPoolExecutor(1, "results")
"""One thread, so that however many results come at once, the event loop waits for one other at most."""

workers = APIRouter(dependencies=[Depends(check_token)], responses=problems(401, 422))
public = APIRouter(responses=problems())


@workers.post(
    "/api/assignments",
    response_model=Assignment,
    responses={204: {"description": "No assignment yet; poll again"}, **problems(410, 503)},
)
async def poll(request: Request, asking: AssignmentRequest, lab: ThisLab) -> Response:
    """Wait for an assignment; 204 after a while without one, 410 where the worker's run is not in progress.

    503 where too many workers wait.
    """

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    try:
        assignment = await lab.dispatcher.poll(asking, gone) if lab.run_manager.has_work_for(asking) else None
    except TooManyWorkers as error:
        raise HTTPException(503, str(error)) from error
    if assignment is None and not lab.run_manager.has_work_for(asking):
        # Not an error: each worker of a run gets this at its end.
        return JSONResponse(Problem(error=f"run {asking.run!r} is not in progress").model_dump(), 410)
    return _answer(assignment)


@workers.post("/api/heartbeats")
async def heartbeat(found: Heartbeat, lab: ThisLab) -> HeartbeatAnswer:
    """Report that a trial goes on."""
    return HeartbeatAnswer(wanted=lab.dispatcher.heartbeat(found) or lab.run_manager.will_give(found.run, found.order))


@workers.post(
    "/api/meetings",
    response_model=MeetingAnswer,
    responses={204: {"description": "Some shards are not ready yet; ask again"}, **problems(409, 503)},
)
async def meet(ready: MeetingRequest, lab: ThisLab) -> Response:
    """Wait until all shards of a trial are ready."""
    try:
        start = await lab.dispatcher.meet(ready)
    except NoMeeting as error:
        if lab.run_manager.will_give(ready.run, ready.order):
            raise HTTPException(503, "the run goes on in a moment; ask again") from error
        raise HTTPException(409, str(error)) from error
    except TimeoutError as error:
        raise HTTPException(503, "the service ends; ask again") from error
    return _answer(None if start is None else MeetingAnswer(start=start))


@workers.post("/api/clock", response_model=LabTime)
async def clock(lab: ThisLab) -> Response:
    """The lab's time, for workers that estimate how far their own clock is off."""
    return _answer(LabTime(seconds=lab.dispatcher.clock()))


def _answer(found: BaseModel | None) -> Response:
    """A document, which is not validated once more; 204 without one."""
    if found is None:
        return Response(status_code=204)
    return Response(found.model_dump_json(), media_type="application/json")


@workers.post("/api/results", responses=problems(409, 503))
async def result(sent: SkipValidation[AssignmentResult], lab: ThisLab) -> ResultAnswer:
    """Send the result of a trial, or of a shard of it. Sent again, it changes nothing."""
    try:
        # Not in the event loop: a result has some ten histograms, and those of a thousand shards come at once.
        found = await asyncio.get_running_loop().run_in_executor(_PARSER, AssignmentResult.model_validate, sent)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error
    try:
        answer = await lab.dispatcher.take(found) or _known(lab, found)
    except TimeoutError as error:
        raise HTTPException(503, "the run could not be saved in time; send the result again") from error
    if answer is None and lab.run_manager.will_give(*found.identity):
        raise HTTPException(503, "the run goes on in a moment; send the result again")
    if answer is None:
        raise HTTPException(409, f"trial {found.of.order} of run {found.run!r} is not waited for")
    return answer


def _known(lab: Lab, found: AssignmentResult) -> ResultAnswer | None:
    """The answer to a result of a trial that the present run holds already."""
    run = lab.run_manager.run
    if run is None or run.run != found.run or found.of.order >= len(run.trials):
        return None
    held = run.trials[found.of.order]
    if held == found.trial or (found.shard is not None and _holds(held, found.shard)):
        return ResultAnswer(taken=True, message="taken before")
    return ResultAnswer(taken=False, message=f"the trial is {held.status} already ({held.reason or 'measured'})")


def _holds(trial: Trial, report: ShardReport) -> bool:
    """Whether a divided trial was made with a shard's report."""
    if trial.status != "done" or report.index >= len(trial.by_shard):
        return False
    held, sent = trial.by_shard[report.index], (report.host, report.counts.finished, report.outcome.wall_seconds)
    return (held.host, held.requests, held.wall_seconds) == sent


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
async def state(lab: ThisLab) -> State:
    """The state of the lab: its run in progress and its workers."""
    return lab.run_manager.state()
