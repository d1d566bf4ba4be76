"""The service's API: what it describes, and what has another shape."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from openapi_spec_validator import validate

from clients.documents import a_trial
from clients.service.requests_to_lab import ASSIGNMENT_REQUEST, BEARER, asked, listening, serving


def test_the_description_is_valid_and_has_every_route(store):
    """By a validator of OpenAPI 3.1: what each route takes, answers and refuses."""

    async def go():
        async with serving(store) as client:
            return (await client.get("/api/openapi.json")).json()

    described = asyncio.run(go())
    validate(described)
    routes = {(method, path) for path, methods in described["paths"].items() for method in methods}
    assert routes == {
        ("get", "/"), ("post", "/start"), ("post", "/stop"), ("get", "/runs/{run}"), ("post", "/runs/{run}/again"),
        ("post", "/api/assignments"), ("post", "/api/heartbeats"), ("post", "/api/meetings"), ("post", "/api/clock"),
            ("post", "/api/results"),
        ("get", "/api/runs"), ("post", "/api/runs"), ("get", "/api/runs/{run}"), ("get", "/api/state"),
        ("get", "/api/standings"), ("get", "/healthz"), ("get", "/metrics"),
    }  # fmt: skip
    result = described["paths"]["/api/results"]["post"]
    assert result["security"] == [{"token": []}]
    assert set(result["responses"]) == {"200", "401", "409", "413", "415", "422", "4XX", "503"}
    problem = {"$ref": "#/components/schemas/Problem"}
    assert result["responses"]["422"]["content"] == {"application/json": {"schema": problem}}
    assert not {"ValidationError", "HTTPValidationError"} & set(described["components"]["schemas"])


@pytest.mark.parametrize(
    ("path", "document", "where"),
    [
        ("/api/assignments", ASSIGNMENT_REQUEST | {"more": 1}, "more: "),
        ("/api/assignments", ASSIGNMENT_REQUEST | {"worker": "../../etc"}, "worker: "),
        ("/api/assignments", ASSIGNMENT_REQUEST | {"strategies": []}, "strategies: "),
        ("/api/assignments", [], "body: "),
        ("/api/heartbeats", {"worker": "a" * 16, "run": "r", "order": -1, "finished": 0}, "order: "),
        ("/api/assignments", ASSIGNMENT_REQUEST | {"host": "h\x1b[2J"}, "host: "),
        ("/api/assignments", ASSIGNMENT_REQUEST | {"strategies": ["a\nb"]}, "strategies.0: "),
        ("/api/heartbeats", {"worker": "a" * 16, "run": "r", "order": 10**4299, "finished": 0}, "order: "),
        ("/api/heartbeats", {"worker": "a" * 16, "run": "r", "order": 0, "finished": 10**4299}, "finished: "),
        ("/api/meetings", {"worker": "a" * 16, "run": "r", "order": 10**4299, "shard": 0}, "order: "),
        ("/api/results", {"worker": "a" * 16, "run": "r", "trial": {"arm": "x"}}, "trial.strategy: "),
        ("/api/results", {"worker": "a" * 16, "run": "r", "shard": {"index": -1}}, "shard.index: "),
        ("/api/results", {"worker": "a" * 16, "run": "r"}, "body: "),
        ("/api/meetings", {"worker": "a" * 16, "run": "r", "order": 0, "shard": 1000}, "shard: "),
        ("/api/runs", {"experiment": "demo", "shards": 0}, "shards: "),
        ("/api/runs", {"experiment": "demo", "rounds": 0}, "rounds: "),
    ],
)
def test_what_has_another_shape_is_refused_with_the_field(store, path, document, where):
    """A message with a missing, wrong or unknown field is refused, and the answer names the field."""
    status, text, _ = asked(store, "POST", path, headers=BEARER, json=document)
    assert status == 422
    assert where in text


def test_a_body_that_is_not_json_is_refused_with_what_is_wrong(store):
    """In one line, as all refusals."""
    headers = BEARER | {"Content-Type": "application/json"}
    status, text, _ = asked(store, "POST", "/api/runs", headers=headers, content="{")
    assert status == 422
    assert "body: not JSON: Expecting property name" in text


def test_what_is_not_sent_as_json_is_refused(store):
    """A browser could send it for another site without asking."""
    assert asked(store, "POST", "/api/runs", headers=BEARER, content="{}")[0] == 415


def test_a_result_for_another_run_is_refused(store):
    """With its name in the line."""
    document = {"worker": "a" * 16, "run": "another", "trial": a_trial().model_dump(mode="json")}
    status, text, _ = asked(store, "POST", "/api/results", headers=BEARER, json=document)
    assert status == 409
    assert "trial 0 of run 'another' is not waited for" in text


def test_a_worker_that_has_gone_away_gets_no_assignment(store):
    """Its connection is closed while it waits; the next worker that polls gets the trial at once."""

    async def go():
        async with listening(store) as port:
            poll = json.dumps(ASSIGNMENT_REQUEST | {"strategies": ["*"]})
            head = f"Host: localhost\r\nAuthorization: {BEARER['Authorization']}\r\nContent-Type: application/json"
            request = f"POST /api/assignments HTTP/1.1\r\n{head}\r\nContent-Length: {len(poll)}\r\n\r\n{poll}"
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request.encode())
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=BEARER) as client:
                while not (await client.get("/api/state")).json()["workers"]:
                    continue
                writer.close()
                await writer.wait_closed()
                run = (await client.post("/api/runs", json={"experiment": "demo"})).json()["run"]
                other = ASSIGNMENT_REQUEST | {"worker": "b" * 16, "strategies": ["*"]}
                answer = await client.post("/api/assignments", json=other, timeout=10)
                workers = (await client.get("/api/state")).json()["workers"]
            return run, answer.json()["run"], {worker["worker"][0]: worker["state"] for worker in workers}

    run, assigned, states = asyncio.run(go())
    assert assigned == run
    assert states["b"] == "measuring"
    assert states["a"] != "measuring"
