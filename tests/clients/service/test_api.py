"""The service's API: what it refuses."""

from __future__ import annotations

import pytest

from clients.documents import a_trial
from clients.service.requests_to_lab import ASSIGNMENT_REQUEST, BEARER, asked


@pytest.mark.parametrize(
    ("path", "document", "where"),
    [
        ("/api/assignments", ASSIGNMENT_REQUEST | {"more": 1}, "more: "),
        ("/api/heartbeats", {"worker": "a" * 16, "run": "r", "order": -1, "finished": 0}, "order: "),
        ("/api/results", {"worker": "a" * 16, "run": "r", "trial": {"arm": "x"}}, "trial.strategy: "),
        ("/api/results", {"worker": "a" * 16, "run": "r"}, "body: "),
        ("/api/runs", {"experiment": "demo", "shards": 0}, "shards: "),
    ],
)
def test_what_has_another_shape_is_refused_with_the_field(store, path, document, where):
    """A message with a missing, wrong or unknown field is refused, and the answer names the field."""
    status, text, _ = asked(store, "POST", path, headers=BEARER, json=document)
    assert status == 422
    assert where in text


@pytest.mark.parametrize(("headers", "status"), [(BEARER, 422), ({"Authorization": "Bearer another"}, 401)])
def test_only_who_knows_the_token_is_answered(store, headers, status):
    """The body is not looked at before."""
    assert asked(store, "POST", "/api/assignments", headers=headers, json={})[0] == status


def test_a_result_for_another_run_is_refused(store):
    """With its name in the line."""
    document = {"worker": "a" * 16, "run": "another", "trial": a_trial().model_dump(mode="json")}
    status, text, _ = asked(store, "POST", "/api/results", headers=BEARER, json=document)
    assert status == 409
    assert "run 'another'" in text
