"""Which worker gets a trial: by the clock of the event loop, without workers' processes."""

from __future__ import annotations

import asyncio

import pytest

from clientlab.errors import IncompleteRun
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.execute import TrialLost
from clientlab.service.dispatcher import Dispatcher
from clientlab.service.recruiter import Bounds
from clientlab.service.schemas import AssignmentRequest, AssignmentResult, Heartbeat
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial

RUN = "20240506-070809-small-abcd"
QUICK = Bounds(patience=0.2, generic=0.1, lost=0.2, start=0.5)
CALM = Bounds(patience=30.0, generic=0.1, lost=30.0)


def planned(strategy: str = "urllib3", order: int = 0) -> PlannedTrial:
    """A trial that nobody has measured."""
    return a_planned_trial(strategy, order=order)


def give(
    dispatcher: Dispatcher, trial: PlannedTrial, *, resumed: bool = False, progressed=lambda _: None
) -> asyncio.Task:
    """The run's side: a trial that waits for a worker."""
    given = dispatcher.give(RUN, "small", trial, Workload(), progressed, resumed=resumed)
    return asyncio.ensure_future(given)


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
        taken = asyncio.ensure_future(dispatcher.take(result(worker, done(assignment.trial))))
        assert (await first).requests == 7
        dispatcher.saved()
        assert (await taken).taken
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
        late = await dispatcher.take(result("a", done(assignment.trial)))
        assert not late.taken

    clock.run(go())


def test_after_a_restart_the_worker_that_has_the_trial_keeps_it(clock):
    """It sends a heartbeat or its result; nobody else is given the trial meanwhile."""

    async def go() -> None:
        dispatcher = Dispatcher(CALM)
        given, other = give(dispatcher, planned(), resumed=True), ask(dispatcher, "b", "urllib3")
        await asyncio.sleep(0)
        assert dispatcher.heartbeat(Heartbeat(worker="a" * 16, run=RUN, order=0, finished=3))
        assert not (await dispatcher.take(result("b", done(planned())))).taken
        taken = asyncio.ensure_future(dispatcher.take(result("a", done(planned()))))
        assert (await given).status == "done"
        dispatcher.saved()
        assert (await taken).taken
        assert not other.done()
        other.cancel()

    clock.run(go())


def test_a_worker_that_was_assigned_nothing_takes_no_trial(clock):
    """Neither by a heartbeat nor by a result; after a restart, a worker that has a shard takes no second one."""

    async def go() -> None:
        dispatcher = Dispatcher(CALM)
        given = give(dispatcher, planned())
        await asyncio.sleep(0)
        assert not dispatcher.heartbeat(Heartbeat(worker="e" * 16, run=RUN, order=0, finished=0))
        assert not (await dispatcher.take(result("e", done(planned())))).taken
        assert (await ask(dispatcher, "a", "urllib3")).trial.order == 0
        given.cancel()
        await asyncio.wait([given])
        trial, workload = planned("urllib3@threads").model_copy(update={"concurrency": 4}), Workload(shards=2)
        given = asyncio.ensure_future(dispatcher.give(RUN, "small", trial, workload, print, resumed=True))
        await asyncio.sleep(0)
        beats = [Heartbeat(worker="e" * 16, run=RUN, order=0, shard=shard, finished=0) for shard in range(2)]
        assert list(map(dispatcher.heartbeat, beats)) == [True, False]
        given.cancel()

    clock.run(go())


def test_a_result_that_is_not_of_the_trial_is_not_taken(clock):
    """Another run's, another trial's, or one with another strategy or route in it."""

    async def go() -> None:
        dispatcher = Dispatcher(CALM)
        given = give(dispatcher, planned())
        await asyncio.sleep(0)
        assert await dispatcher.take(result("a", done(planned()), "20240506-070809-other-abcd")) is None
        for change in ({"order": 1}, {"strategy": "pycurl"}, {"route": "proxy"}):
            assert await dispatcher.take(result("a", done(planned(), **change))) is None
        given.cancel()

    clock.run(go())


def test_a_result_is_taken_when_it_is_saved_and_as_often_as_it_is_sent(clock):
    """A worker lets go of nothing that is not kept; a run that ends unsaved takes nothing."""

    async def go() -> None:
        dispatcher = Dispatcher(CALM)
        given = give(dispatcher, planned())
        await ask(dispatcher, "a", "urllib3")
        sent = result("a", done(planned()))
        first = asyncio.ensure_future(dispatcher.take(sent))
        await given
        await asyncio.sleep(0)
        assert not first.done()
        dispatcher.saved()
        assert (await first).taken
        assert (await dispatcher.take(sent)).taken
        second = give(dispatcher, planned(order=1))
        await asyncio.sleep(0)
        dispatcher.end(IncompleteRun("no room"))
        with pytest.raises(IncompleteRun):
            await second
        dispatcher.over()
        assert await dispatcher.take(result("a", done(planned(order=1)))) is None

    clock.run(go())
