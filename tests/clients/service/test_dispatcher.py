"""Which worker gets a trial: by the clock of the event loop, without workers' processes."""

from __future__ import annotations

import asyncio

import pytest

from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.execute import TrialLost
from clientlab.service.dispatcher import Dispatcher
from clientlab.service.recruiter import Bounds
from clientlab.service.schemas import AssignmentRequest, AssignmentResult, Heartbeat
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial

RUN = "20240506-070809-small-abcd"
QUICK = Bounds(patience=0.2, generic=0.1, lost=0.2)
CALM = Bounds(patience=30.0, generic=0.1, lost=30.0)


def planned(strategy: str = "urllib3", order: int = 0) -> PlannedTrial:
    """A trial that nobody has measured."""
    return a_planned_trial(strategy, order=order)


def give(dispatcher: Dispatcher, trial: PlannedTrial, *, progressed=lambda _: None) -> asyncio.Task:
    """The run's side: a trial that waits for a worker."""
    return asyncio.ensure_future(dispatcher.give(RUN, "small", trial, Workload(), progressed))


async def stays() -> None:
    """The worker does not go away."""
    await asyncio.Event().wait()


def ask(dispatcher: Dispatcher, worker: str, *strategies: str) -> asyncio.Task:
    """A worker's side: it polls for an assignment."""
    request = AssignmentRequest(worker=worker * 16, host=worker, strategies=list(strategies))
    return asyncio.ensure_future(dispatcher.poll(request, stays))


def done(trial: PlannedTrial, **changes) -> Trial:
    """The trial as a worker sends it."""
    outcome = {"status": "done", "started": utc_now(), "requests": 7, "wall_seconds": 0.1}
    return Trial(**trial.model_dump() | outcome | changes)


def result(worker: str, trial: Trial, run: str = RUN) -> AssignmentResult:
    return AssignmentResult(worker=worker * 16, run=run, trial=trial)


def test_one_trial_at_a_time_over_all_workers(clock):
    """Of two that can do it one gets it; the next trial is for the other as well."""

    async def go() -> None:
        dispatcher = Dispatcher(CALM)
        first, asked = give(dispatcher, planned()), [ask(dispatcher, name, "urllib3") for name in "ab"]
        had, waits = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        assert (len(had), len(waits)) == (1, 1)
        assignment = had.pop().result()
        assert (assignment.run, assignment.experiment, assignment.trial.strategy) == (RUN, "small", "urllib3")
        worker = next(state.worker[0] for state in dispatcher.workers() if state.state == "measuring")
        assert dispatcher.take(result(worker, done(assignment.trial))) is None
        assert (await first).requests == 7
        second = give(dispatcher, planned(order=1))
        assert (await waits.pop()).trial.order == 1
        second.cancel()

    clock.run(go())


def test_a_generic_worker_takes_only_what_no_other_is_there_for(clock):
    """A strategy of a worker's own waits for it; settings make no other strategy of it."""

    async def go() -> None:
        dispatcher = Dispatcher(CALM)
        generic, named = ask(dispatcher, "a", "*"), ask(dispatcher, "b", "urllib3")
        await asyncio.sleep(0)
        first = give(dispatcher, planned("urllib3?pool=3"))
        assert (await named).trial.strategy == "urllib3?pool=3"
        dispatcher.end(TrialLost("of the test"))
        with pytest.raises(TrialLost):
            await first
        second = give(dispatcher, planned("pycurl", 1))
        assert (await generic).trial.strategy == "pycurl"
        second.cancel()

    clock.run(go())


def test_a_worker_that_is_not_heard_of_has_lost_its_trial(clock):
    """And one that has beaten has not; what it sends later is not taken, and it is told to stop."""

    async def go() -> None:
        seen: list[int] = []
        dispatcher = Dispatcher(QUICK)
        asked, given = ask(dispatcher, "a", "urllib3"), give(dispatcher, planned(), progressed=seen.append)
        assignment = await asked
        heartbeat = Heartbeat(worker="a" * 16, run=RUN, order=0, finished=5)
        assert dispatcher.heartbeat(heartbeat)
        assert not dispatcher.heartbeat(heartbeat.model_copy(update={"order": 1}))
        assert not dispatcher.heartbeat(heartbeat.model_copy(update={"worker": "b" * 16}))
        assert seen == [5]
        with pytest.raises(TrialLost):
            await given
        assert not dispatcher.heartbeat(heartbeat)
        assert dispatcher.take(result("a", done(assignment.trial)))

    clock.run(go())


def test_after_a_restart_the_trial_is_given_when_its_worker_has_stopped(clock):
    """The worker that has it learns by its next heartbeat or result that it is not wanted any more."""

    async def go() -> None:
        dispatcher, began = Dispatcher(CALM), clock.monotonic()
        dispatcher.await_abandoned_trials()
        given, other = give(dispatcher, planned()), ask(dispatcher, "b", "urllib3")
        await asyncio.sleep(0)
        assert not dispatcher.heartbeat(Heartbeat(worker="a" * 16, run=RUN, order=0, finished=3))
        assert dispatcher.take(result("a", done(planned())))
        assert (await other).trial.order == 0
        assert clock.monotonic() - began > CALM.heartbeat
        given.cancel()

    clock.run(go())


def test_a_worker_that_polls_during_its_trial_has_lost_it(clock):
    """Its process was replaced, or the assignment never arrived."""

    async def go() -> None:
        dispatcher = Dispatcher(CALM)
        given = give(dispatcher, planned())
        assert (await ask(dispatcher, "a", "urllib3")).trial.order == 0
        again = ask(dispatcher, "a", "urllib3")
        with pytest.raises(TrialLost, match="polled for another"):
            await given
        again.cancel()

    clock.run(go())
