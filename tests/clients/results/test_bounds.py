"""Bounds of a run document: each number has both, and each value of `every_field` is changed by the property test."""

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
from clients.every_field import searched_run, whole_run

SCHEMA = schema()
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


def filled_in(node: dict[str, Any], value: Any, name: str = "Run") -> Iterator[tuple[str, str]]:
    """Model and name of each field that has a value."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        node = SCHEMA["$defs"][name]
    for choice in node.get("anyOf", []):
        yield from filled_in(choice, value, name)
    if isinstance(value, list) and "items" in node:
        for inner in value:
            yield from filled_in(node["items"], inner, name)
    if isinstance(value, dict):
        fields, others = node.get("properties", {}), node.get("additionalProperties")
        for key, inner in value.items():
            if key in fields and inner is not None:
                yield name, key
                yield from filled_in(fields[key], inner, name)
            elif isinstance(others, dict):
                yield from filled_in(others, inner, name)


def test_the_two_runs_that_are_changed_have_a_value_in_every_field():
    """So the property test tries every field."""
    models = {"Run": SCHEMA, **SCHEMA["$defs"]}
    every = {(name, key) for name, model in models.items() for key in model.get("properties", {})}
    found = {field for run in (whole_run(), searched_run()) for field in filled_in(SCHEMA, run.model_dump(mode="json"))}
    assert every - found == set()


DAMAGED = [
    (
        ("workloads", "open", "rate"),
        "x",
        "experiment.workloads.open.rate: 'x' is not a rate; write 500/s, 500 or 30/m",
    ),
    (("workloads", "open", "requests"), 10**12, "experiment.workloads.open: requests: 1000000000000: requests in all"),
    (
        ("workloads", "workload", "delay"),
        "soon",
        "experiment.workloads.workload.delay: 'soon' is not a length of time",
    ),
    (("workloads", "workload", "timeout"), 1e-322, "experiment.workloads.workload: timeout: .*: write more than 0"),
    (("seed",), 10**400, "experiment.seed: "),
]


@pytest.mark.parametrize(("place", "value", "says"), DAMAGED)
def test_a_run_with_a_value_out_of_bounds_is_named_and_hides_no_other(place, value, says, tmp_path):
    """One line in the list of runs, and the others beside it."""
    store = Store(tmp_path)
    for name in ("20240101-000000-run", "20240102-000000-run"):
        store.claim(name)
        store.save(whole_run().model_copy(update={"run": name}))
    document = whole_run().model_dump(mode="json")
    at = document["experiment"]
    *way, key = place
    for step in way:
        at = at[step]
    at[key] = value
    check(document, store, says)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"memory_bytes": 10**400}, "surroundings.memory_bytes: "),
        ({"cpu_usable": 1e-322}, "surroundings.cpu_usable: Input should be 0, or at least 1e-30 away from it"),
    ],
)
def test_surroundings_out_of_bounds_are_refused(changes, says, tmp_path):
    """Before any report computes with them."""
    store = Store(tmp_path)
    store.claim("20240102-000000-run")
    document = whole_run().model_dump(mode="json")
    document["surroundings"] |= changes
    check(document, store, says)


def check(document: dict[str, Any], store: Store, says: str) -> None:
    """The second run of the folder, with this document, is named in one line, and all others are listed."""
    (store.folder / "20240102-000000-run" / RUN_FILE).write_text(json.dumps(document))
    with pytest.raises(LabError, match=says) as caught:
        find_judged(store, "20240102-000000-run")
    assert "\n" not in str(caught.value)
    *others, damaged = run_list.rows(store)
    assert damaged["status"] == "unreadable"
    assert all(row["status"] == "done" for row in others)


@pytest.mark.parametrize("field", ["wall_seconds", "cpu_seconds"])
def test_a_time_next_to_nothing_is_refused(field, tmp_path):
    """A chart's scale would divide by it."""
    store = Store(tmp_path)
    for name in ("20240101-000000-run", "20240102-000000-run"):
        store.claim(name)
        store.save(whole_run().model_copy(update={"run": name}))
    document = whole_run().model_dump(mode="json")
    document["trials"][0][field] = 1e-322
    check(document, store, f"trials.0.{field}: Input should be 0, or at least 1e-30 away from it")


@pytest.mark.parametrize("amount", [{"requests": 10**9}, {"requests": None, "duration": 1e6, "rate": 1e9}])
def test_the_arrivals_of_a_planned_load_are_not_drawn_to_read_a_run(amount, tmp_path):
    """To draw a thousand million of them would take a quarter of an hour; their number is known without."""
    store = Store(tmp_path)
    store.claim("20240102-000000-run")
    document = whole_run().model_dump(mode="json") | {"status": "running"}  # judged when it is read
    document["experiment"]["workloads"]["open"] |= amount
    (store.folder / "20240102-000000-run" / RUN_FILE).write_text(json.dumps(document))
    assert find_judged(store, "20240102-000000-run").status == "interrupted"
