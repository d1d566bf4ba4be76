"""Which workers get the shards of a trial, and what ends it: by the event loop's clock, without workers' processes."""

from __future__ import annotations

import asyncio

import pytest

from clientlab.results.trial import PlannedTrial
from clientlab.running.execute import TrialLost
from clientlab.service import dispatcher as dispatcher_module
from clientlab.service.dispatcher import Dispatcher
from clientlab.service.given_trial import START_AFTER, NoMeeting, reported_trial
from clientlab.service.recruiter import Bounds
from clientlab.service.schemas import AssignmentRequest, AssignmentResult, Heartbeat, MeetingRequest
from clientlab.worker.assignment import Assignment
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial, a_shard_report
from clients.service.test_dispatcher import stays

RUN = "20240506-070809-small-abcd"
CALM = Bounds(patience=30.0, generic=0.1, lost=30.0)
QUICK = Bounds(patience=0.2, generic=0.1, lost=0.2)
NOW = 1_700_000_000.0


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch):
    """The dispatcher looks for what is late twenty times a second."""
    monkeypatch.setattr(dispatcher_module, "_TICK", 0.05)


def planned(order: int = 0, strategy: str = "urllib3@threads") -> PlannedTrial:
    return a_planned_trial(strategy, order=order).model_copy(update={"concurrency": 5})


def give(dispatcher: Dispatcher, shards: int, order: int = 0, *, progressed=lambda _: None):
    """The run's side: a trial that waits for its workers."""
    workload = Workload(requests=4 * shards, shards=shards)
    return asyncio.ensure_future(dispatcher.give(RUN, "small", planned(order), workload, progressed))


def ask(dispatcher: Dispatcher, worker: str, *strategies: str, gone=stays) -> asyncio.Task[Assignment | None]:
    """A worker's side: it polls for an assignment."""
    names = list(strategies) or ["urllib3@threads"]
    request = AssignmentRequest(worker=worker * 16, host=f"host-{worker}", strategies=names)
    return asyncio.ensure_future(dispatcher.poll(request, gone))


async def assigned(dispatcher: Dispatcher, workers: str) -> dict[str, int]:
    """The shard that each of the workers got."""
    polls = {worker: ask(dispatcher, worker) for worker in workers}
    return {worker: (await poll).shard for worker, poll in polls.items()}


def beat(dispatcher: Dispatcher, worker: str, finished: int = 0) -> bool:
    return dispatcher.heartbeat(Heartbeat(worker=worker * 16, run=RUN, order=0, finished=finished))


def meet(dispatcher: Dispatcher, worker: str) -> asyncio.Task[float | None]:
    return asyncio.ensure_future(dispatcher.meet(MeetingRequest(worker=worker * 16, run=RUN, order=0)))


def report(dispatcher: Dispatcher, worker: str, shard: int, shards: int) -> str | None:
    found = a_shard_report(planned(), shard, shards)
    return dispatcher.take(AssignmentResult(worker=worker * 16, run=RUN, shard=found))


def test_each_shard_goes_to_a_worker_of_its_own_and_all_at_once(clock):
    """In the order of their hosts; while one is missing, nobody is given anything. The sum is the trial."""

    async def go() -> None:
        seen: list[int] = []
        dispatcher = Dispatcher(CALM, clock=lambda: NOW)
        given = give(dispatcher, 3, progressed=seen.append)
        early = [ask(dispatcher, worker) for worker in "ca"]
        again = ask(dispatcher, "a")  # the same worker does not count twice
        await asyncio.sleep(0.1)
        assert not any(poll.done() for poll in (*early, again))
        again.cancel()
        await asyncio.wait([again])
        late = ask(dispatcher, "b")
        shards = {poll_of: (await poll).shard for poll_of, poll in zip("cab", [*early, late], strict=True)}
        assert shards == {"a": 0, "b": 1, "c": 2}
        assert all(beat(dispatcher, worker, finished) for worker, finished in (("a", 2), ("b", 3)))
        assert not beat(dispatcher, "d")
        assert seen == [2, 5]
        meetings = [meet(dispatcher, worker) for worker in "ab"]
        await asyncio.sleep(0.1)
        assert not any(meeting.done() for meeting in meetings)
        starts = set(await asyncio.gather(*meetings, meet(dispatcher, "c")))
        assert len(starts) == 1
        assert NOW + START_AFTER <= starts.pop() <= NOW + START_AFTER + 0.1
        assert [report(dispatcher, worker, shards[worker], 3) for worker in "abc"] == [None] * 3
        reports = await given
        trial = reported_trial(planned(), Workload(requests=12, shards=3), reports)
        assert (trial.status, trial.requests, [shard.host for shard in trial.by_shard]) == (
            "done", 12, ["host-0", "host-1", "host-2"],
        )  # fmt: skip
        assert seen[-1] == 12
        assert report(dispatcher, "a", 0, 3)  # the trial is over

    clock.run(go())


def test_too_few_workers_fail_the_trial_with_their_number(clock):
    """The second trial does not wait for them, until one more comes."""

    async def go() -> None:
        dispatcher = Dispatcher(QUICK)
        polls = [ask(dispatcher, worker) for worker in "ab"]
        trial = await give(dispatcher, 4)
        assert trial.status == "failed"
        assert trial.reason.startswith("2 of 4 workers for strategy 'urllib3@threads' came")
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert (await give(dispatcher, 4, order=1)).status == "failed"
        assert loop.time() - began < QUICK.patience
        polls += [ask(dispatcher, worker) for worker in "cd"]
        given = give(dispatcher, 4, order=2)
        assert {(await poll).shard for poll in polls} == {0, 1, 2, 3}
        given.cancel()

    clock.run(go())


def test_a_shard_that_is_not_heard_of_ends_the_trial_for_all(clock):
    """The others learn it by their next heartbeat, and at the meeting; what they report later is not taken."""

    async def go() -> None:
        dispatcher = Dispatcher(QUICK)
        given = give(dispatcher, 2)
        assert await assigned(dispatcher, "ab") == {"a": 0, "b": 1}
        assert beat(dispatcher, "b")
        meeting = meet(dispatcher, "a")
        while not given.done():
            beat(dispatcher, "a")
            await asyncio.sleep(0.02)
        with pytest.raises(TrialLost, match="shard 2 of 2 on host-b"):
            await given
        with pytest.raises(NoMeeting):
            await meeting
        assert not beat(dispatcher, "a")
        assert report(dispatcher, "a", 0, 2)

    clock.run(go())
