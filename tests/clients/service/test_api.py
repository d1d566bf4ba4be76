"""The service's API: what it describes, and what has another shape."""

from __future__ import annotations

import asyncio

import pytest
from openapi_spec_validator import validate

from clientlab.service.app import ROUTES
from clients.documents import a_trial
from clients.service.asking import ASKING, BEARER, asked, serving


def test_the_description_is_valid_and_has_every_route(store):
    """By a validator of OpenAPI 3.1; each route of the router, and none that is not there."""

    async def go():
        async with serving(store) as client:
            async with client.get("/api/openapi.json") as answer:
                described = await answer.json()
            routes = {
                (route.method.lower(), route.resource.canonical)
                for route in client.app.router.routes()
                if route.method != "HEAD"
            }
            return described, routes

    described, routes = asyncio.run(go())
    validate(described)
    assert {(method, path) for path, methods in described["paths"].items() for method in methods} == routes
    assert len(routes) == len(ROUTES)
    assert described["paths"]["/api/results"]["post"]["security"] == [{"token": []}]


@pytest.mark.parametrize(
    ("path", "document", "where"),
    [
        ("/api/turns", ASKING | {"more": 1}, "more: "),
        ("/api/turns", ASKING | {"worker": "../../etc"}, "worker: "),
        ("/api/turns", ASKING | {"strategies": []}, "strategies: "),
        ("/api/turns", [], "body: "),
        ("/api/beats", {"worker": "a" * 16, "run": "r", "order": -1, "finished": 0}, "order: "),
        ("/api/results", {"worker": "a" * 16, "run": "r", "trial": {"arm": "x"}}, "trial.strategy: "),
        ("/api/runs", {"experiment": "demo", "rounds": 0}, "rounds: "),
    ],
)
def test_what_has_another_shape_is_refused_with_the_field(store, path, document, where):
    """Unknown fields too."""
    status, text, _ = asked(store, "POST", path, headers=BEARER, json=document)
    assert status == 422
    assert where in text


def test_what_is_no_json_is_refused(store):
    """A browser could send it for another site without asking."""
    assert asked(store, "POST", "/api/runs", headers=BEARER, data="{}")[0] == 415


def test_a_result_for_another_run_is_refused(store):
    """With its name in the line."""
    document = {"worker": "a" * 16, "run": "another", "trial": a_trial().model_dump(mode="json")}
    status, text, _ = asked(store, "POST", "/api/results", headers=BEARER, json=document)
    assert status == 409
    assert "trial 0 of run 'another' is not waited for" in text
