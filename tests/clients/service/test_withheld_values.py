"""Secrets of a served experiment: workers get them, and no file, page or metric of the service has them."""

from __future__ import annotations

import asyncio

import pytest

from clientlab.experiments.file import read_experiment
from clientlab.redaction import MARK
from clientlab.service.plans import served_plan
from clientlab.service.schemas import Wanted
from clients.service.requests_to_lab import ASSIGNMENT_REQUEST, BEARER, serving

SECRETS = {"Authorization": "Bearer Pl4nted-Token", "X-Plain": "shown"}
PATH = "/?token=Pl4nted-Query"


@pytest.fixture
def plan(tmp_path):
    """The plan of an experiment with secrets in its headers and its query."""
    file = tmp_path / "mine.toml"
    headers = "".join(f'{name} = "{value}"\n' for name, value in SECRETS.items())
    file.write_text(
        f'question = "?"\nstrategies = ["urllib3"]\n[workloads.w]\npath = "{PATH}"\n[workloads.w.headers]\n{headers}'
    )
    assert read_experiment(file).experiment.workloads["w"].first.path == PATH
    return served_plan(Wanted(experiment="mine"), file)


async def assigned(client) -> dict:
    """The workload that the next worker gets."""
    answer = await client.post("/api/assignments", headers=BEARER, json=ASSIGNMENT_REQUEST)
    return answer.json()["workload"]


@pytest.mark.real
def test_workers_get_secrets_that_no_file_and_no_page_has(plan, store):
    """Also after a restart with the same experiment; without it, the run is left as it is."""

    async def first():
        async with serving(store, first=plan) as client:
            workload = await assigned(client)
            (name,) = store.names()
            pages = ("/", f"/runs/{name}", f"/api/runs/{name}", "/api/state", "/metrics")
            return workload, [(await client.get(page)).text for page in pages]

    workload, pages = asyncio.run(first())
    assert (workload["headers"], workload["path"]) == (SECRETS, PATH)
    run = store.read("last")
    stored = run.experiment.workloads["w"]
    assert (stored.headers, stored.path) == ({"Authorization": MARK, "X-Plain": "shown"}, f"/?token={MARK}")
    files = [path.read_text() for path in store.folder.rglob("*") if path.is_file()]
    assert not [text for text in (*pages, *files) if "Pl4nted" in text]

    async def restarted(first):
        async with serving(store, first=first) as client:
            return (await client.get("/api/state")).json()

    assert asyncio.run(restarted(plan))["run"] == run.run
    state = asyncio.run(restarted(None))
    assert (state["run"], state["measuring"]) == (None, False)
    assert run.run in state["message"]
