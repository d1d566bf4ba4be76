"""Runs that the service begins, one at a time, and goes on with after a restart; the test plays the worker."""

from __future__ import annotations

import asyncio

import pytest

from clients.service.requests_to_lab import ASSIGNMENT_REQUEST, BEARER, serving


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
