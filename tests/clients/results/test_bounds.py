"""Bounds of a run document: each number has both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from clientlab.errors import LabError
from clientlab.judging.judgement import find_judged
from clientlab.reports import run_list
from clientlab.results.document import schema
from clientlab.results.store import RUN_FILE, Store
from clients.documents import a_run, a_trial

SCHEMA = schema()
NAMES = ("20240101-000000-run", "20240102-000000-run")
UNBOUNDED = {
    "/$defs/ClaimResult/properties/ratio",  # computed, as is its interval: the ends of a wide one may be infinite
    "/$defs/ClaimResult/properties/interval",
    "/properties/format",  # a constant
}


def numbers_in(node: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The place and the schema of each number."""
    if isinstance(node, dict):
        if node.get("type") in {"number", "integer"}:
            yield place, node
        for key, inner in node.items():
            yield from numbers_in(inner, f"{place}/{key}")
    elif isinstance(node, list):
        for number, inner in enumerate(node):
            yield from numbers_in(inner, f"{place}/{number}")


def test_each_number_of_a_run_document_has_a_least_and_a_most_value():
    """A new field without bounds fails here."""
    found = {
        place
        for place, node in numbers_in(SCHEMA)
        if not ({"minimum", "exclusiveMinimum"} & node.keys() and {"maximum", "exclusiveMaximum"} & node.keys())
    }
    assert {place for place in found if not place.startswith(tuple(UNBOUNDED))} == set()


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("workload", "rate", "x"),
        ("workload", "requests", 10**12),
        ("workload", "delay", "soon"),
        ("workload", "timeout", 1e-322),
        ("trial", "wall_seconds", 1e-322),  # a chart's scale would divide by it
        ("surroundings", "memory_bytes", 10**400),
    ],
)
def test_a_run_with_a_value_out_of_bounds_is_named_and_hides_no_other(part, key, value, tmp_path):
    """It is unreadable in the list of runs, with the others beside it, and its error is a line that names the field."""
    store = Store(tmp_path)
    for name in NAMES:
        store.claim(name)
        store.save(a_run(a_trial(), name=name))
    document = a_run(a_trial(), name=NAMES[1]).model_dump(mode="json")
    places = {
        "workload": document["experiment"]["workloads"]["workload"],
        "trial": document["trials"][0],
        "surroundings": document["surroundings"],
    }
    places[part][key] = value
    (store.folder / NAMES[1] / RUN_FILE).write_text(json.dumps(document))
    with pytest.raises(LabError, match=key) as caught:
        find_judged(store, NAMES[1])
    assert "\n" not in str(caught.value)
    assert [row["status"] for row in run_list.rows(store)] == ["done", "unreadable"]
