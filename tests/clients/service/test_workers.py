"""The table of workers: it has a limit, and its lists are short where they are shown."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from clientlab.service import workers as workers_module
from clientlab.service.schemas import MOST_NAMES_SHOWN, AssignmentRequest
from clientlab.service.workers import TooManyWorkers, Workers
from clients.service.requests_to_lab import ASSIGNMENT_REQUEST, BEARER, listening


def request(name: str, strategies=("urllib3",)) -> AssignmentRequest:
    return AssignmentRequest(worker=name * 16, host=f"host-{name}", strategies=list(strategies))


@pytest.fixture
def small(monkeypatch):
    """The service knows three workers at most."""
    monkeypatch.setattr(workers_module, "MOST_WORKERS", 3)


@pytest.mark.usefixtures("small")
def test_a_full_table_forgets_the_worker_that_was_heard_of_least_lately():
    """One that waits is never forgotten; where all of them wait, another worker is refused."""
    workers = Workers()
    for name in "abc":
        workers.register(request(name))
    workers.heard_of("a" * 16)
    found, is_new = workers.register(request("d"))
    assert is_new
    assert [state.worker[0] for state in workers.states({})] == ["a", "c", "d"]
    found.polls = 1
    workers.register(request("e"))
    workers.register(request("f"))
    assert [state.worker[0] for state in workers.states({})] == ["d", "e", "f"]
    for name in "ef":
        workers.register(request(name))[0].polls = 1
    with pytest.raises(TooManyWorkers, match="3 workers wait already"):
        workers.register(request("a"))


@pytest.mark.usefixtures("small")
def test_a_worker_for_which_there_is_no_room_is_told_to_come_again(store):
    """With 503, after which a worker polls again; those that wait go on waiting."""

    async def go():
        async with (
            listening(store) as port,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=BEARER, timeout=10) as client,
        ):

            async def poll(name: str) -> httpx.Response:
                return await client.post("/api/assignments", json=ASSIGNMENT_REQUEST | {"worker": name * 16})

            waiting = [asyncio.create_task(poll(name)) for name in "abc"]
            while len((await client.get("/api/state")).json()["workers"]) < 3:
                continue
            answer = await poll("d")
            assert not any(task.done() for task in waiting)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            return answer

    answer = asyncio.run(go())
    assert answer.status_code == 503
    assert "3 workers wait already" in answer.text


def test_the_state_has_the_first_strategies_of_a_worker_and_how_many_others_there_are():
    """All of them count where a worker is looked for."""
    workers = Workers()
    workers.register(request("a", [f"strategy-{number}" for number in range(MOST_NAMES_SHOWN + 7)]))
    (state,) = workers.states({})
    assert state.strategies[-1] == f"strategy-{MOST_NAMES_SHOWN - 1}"
    assert state.more_strategies == 7
    assert workers.able(f"strategy-{MOST_NAMES_SHOWN + 6}") == 1
