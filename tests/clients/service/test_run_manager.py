"""Runs that the service begins, one at a time, and goes on with after a restart; the test plays the worker."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from clientlab import __version__
from clientlab.experiments.file import bundled, read_plan
from clientlab.results.target import Target
from clientlab.service.run_manager import MARK
from clients.documents import a_run, a_trial
from clients.service.requests_to_lab import ASSIGNMENT_REQUEST, BEARER, serving

STACK = Target(testbed="compose")


@pytest.mark.real
def test_the_api_begins_an_experiment_and_one_at_a_time(store):
    """The run's first trial waits for a worker; a second run is refused."""

    async def go():
        async with serving(store) as client:
            wanted = {"experiment": "demo", "rounds": 1}
            name = (await client.post("/api/runs", headers=BEARER, json=wanted)).json()["run"]
            assert (await client.post("/api/runs", headers=BEARER, json=wanted)).status_code == 409
            assert store.names() == [name]
            anything = ASSIGNMENT_REQUEST | {"strategies": ["*"]}
            assignment = (await client.post("/api/assignments", headers=BEARER, json=anything)).json()
            assert assignment["run"] == name
            state = (await client.get("/api/state")).json()
            assert (state["measuring"], state["experiment"], state["planned"]) == (True, "demo", 12)
            assert [worker["state"] for worker in state["workers"]] == ["measuring"]
            left = f'clientlab_schedule_trials{{experiment="demo",run="{name}",state="left"}} 12.0'
            assert left in (await client.get("/metrics")).text

    asyncio.run(go())


def test_a_run_that_another_process_has_finished_is_left_alone(store):
    """Two services have one results folder: the second reads the run again when the first has finished."""
    run = a_run(a_trial(), name="20240506-070809-demo-abcd", rounds=2)
    run = run.model_copy(update={"status": "running", "clientlab": __version__, "target": STACK})
    (store.claim(run.run) / MARK).write_text("demo")
    store.save(run)
    finished = run.model_copy(update={"status": "done", "trials": [a_trial(), a_trial(number=2, order=1)]})

    async def go():
        with contextlib.ExitStack() as first_service:
            first_service.enter_context(store.alone(pytest.fail))
            async with serving(store, first=read_plan(bundled()["demo"])) as client:
                store.save(finished)
                first_service.close()
                while (await client.get("/api/state")).json()["measuring"]:  # noqa: ASYNC110 - it has no event
                    await asyncio.sleep(0.01)
                return (await client.get("/api/state")).json()["message"]

    assert run.run in asyncio.run(go())
    assert store.read(run.run) == finished
