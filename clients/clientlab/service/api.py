"""The API: assignments, heartbeats, meetings and results of workers; runs and the lab's state for programs."""

from __future__ import annotations

import asyncio
import hmac
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel

from clientlab.errors import LabError
from clientlab.judging.judgement import find_judged
from clientlab.results.document import Run
from clientlab.service.given_trial import NoMeeting
from clientlab.service.lab import ThisLab
from clientlab.service.schemas import (
    AssignmentRequest,
    AssignmentResult,
    Heartbeat,
    HeartbeatAnswer,
    LabTime,
    MeetingAnswer,
    MeetingRequest,
    RunRow,
    Started,
    State,
    Wanted,
)


async def check_token(
    lab: ThisLab, given: Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]
) -> None:
    """Raise HTTPException (401) without the workers' token. A service without a token trusts everybody."""
    if lab.token and not (given and hmac.compare_digest(given.credentials.encode(), lab.token.encode())):
        raise HTTPException(401, "wrong token: give the worker the lab's own CLIENTLAB_TOKEN")


workers = APIRouter(dependencies=[Depends(check_token)])
public = APIRouter()


@workers.post("/api/assignments")
async def poll(request: Request, asking: AssignmentRequest, lab: ThisLab) -> Response:
    """Wait for an assignment; 204 after a while without one."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    return _answer(await lab.dispatcher.poll(asking, gone))


@workers.post("/api/heartbeats")
async def heartbeat(found: Heartbeat, lab: ThisLab) -> HeartbeatAnswer:
    """Report that a trial goes on."""
    return HeartbeatAnswer(wanted=lab.dispatcher.heartbeat(found))


@workers.post("/api/meetings")
async def meet(ready: MeetingRequest, lab: ThisLab) -> Response:
    """Wait until all shards of a trial are ready; 204 after a while if some are not."""
    try:
        start = await lab.dispatcher.meet(ready)
    except NoMeeting as error:
        raise HTTPException(409, str(error)) from error
    except TimeoutError as error:
        raise HTTPException(503, "the service ends; ask again") from error
    return _answer(None if start is None else MeetingAnswer(start=start))


@workers.post("/api/clock")
async def clock(lab: ThisLab) -> LabTime:
    """The lab's time, for workers that estimate how far their own clock is off."""
    return LabTime(seconds=lab.dispatcher.clock())


def _answer(found: BaseModel | None) -> Response:
    """A document, which is not validated once more; 204 without one."""
    if found is None:
        return Response(status_code=204)
    return Response(found.model_dump_json(), media_type="application/json")


@workers.post("/api/results", status_code=204)
async def result(found: AssignmentResult, lab: ThisLab) -> None:
    """Send the result of a trial, or of a shard of it."""
    if why := lab.dispatcher.take(found):
        raise HTTPException(409, why)


@workers.post("/api/runs")
async def start(wanted: Wanted, lab: ThisLab) -> Started:
    """Start a run of a bundled experiment."""
    try:
        return Started(run=lab.start(wanted))
    except LabError as error:
        raise HTTPException(409, str(error)) from error


@public.get("/api/runs")
async def runs(lab: ThisLab) -> list[RunRow]:
    """The newest runs."""
    return await asyncio.to_thread(lab.run_index.rows)


@public.get("/api/runs/{run}")
async def one_run(run: str, lab: ThisLab) -> Run:
    """A run's document."""
    if run not in lab.store.names():
        raise HTTPException(404, f"there is no run {run!r}")
    try:
        return await asyncio.to_thread(find_judged, lab.store, run)  # some megabytes may have to be parsed
    except LabError as error:
        raise HTTPException(404, str(error)) from error


@public.get("/api/state")
async def state(lab: ThisLab) -> State:
    """The state of the lab: its run in progress and its workers."""
    return lab.run_manager.state()
