"""Any change of a run document: it is refused with its place, or read; then all that shows runs can show it.

CLIENTLAB_PROPERTY_EXAMPLES sets how many changed documents are tried, other ones each time. Without it, the same forty
are tried in each run of the tests.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import math
import os
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as draw
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from clientlab.errors import LabError
from clientlab.judging.claim_verdicts import judged
from clientlab.judging.comparison import compare
from clientlab.judging.judgement import find_judged
from clientlab.judging.run_thresholds import check_changes, judge_run, threshold_of_run
from clientlab.judging.thresholds import ThresholdResult
from clientlab.printable import printable
from clientlab.reports import as_csv, as_html, as_junit, as_markdown, as_terminal, comparison, run_list
from clientlab.results.document import Run
from clientlab.results.store import RUN_FILE, Store
from clientlab.service.run_index import RunIndex
from clientlab.service.standings import standings_of
from clients.every_field import searched_run, whole_run

EXAMPLES = os.environ.get("CLIENTLAB_PROPERTY_EXAMPLES")
MOST_SECONDS = 2.0
MOST_BYTES = 300e6
MANY = 2_000

NAME = "20240506-070809-run-abcd"

Document = Any
Place = list[str | int]

HOSTILE = "\x1b]0;title\x07\x9b31m\u202e<script>\r\n|=1+1\ud800"
NUMBERS = [
    0, 1, -1, 5, 10**9, -(2**63), 10**12, 10**18, 2**63 - 1, 10**30, 10**400, 0.5, -0.5, 1e-322, 1e-300, 1e-30, 1e-9,
    1e12, 1e308, -1e308, math.nan, math.inf, -math.inf,
]  # fmt: skip
TEXTS = [
    "",
    "1",
    "done",
    "lost",
    "running",
    "0001-01-01",
    "9999-12-31T23:59:59-23:59",
    "../../etc/passwd",
    "x",
    "1e-9",
    "1000000000/s",
    "0s:1/s,1s:1000000000/s",
    "normal:0,1e-99",
    "2024-05-06T07:08:09+00:00",
    "poisson",
    "aiohttp@gather?pool=1000000000",
    "x" * 100_000,
]
PARTS = [[], {}, [[]], [None], {"": ""}, {HOSTILE: HOSTILE}, {"a": 1e308}, [1, 2, 3]]
VALUES = [None, True, False, HOSTILE, "9" * 5000, *NUMBERS, *TEXTS, *PARTS]


BASES = [whole_run(), searched_run()]
WHOLE = [json.loads(run.model_dump_json()) for run in BASES]


def places_of(document: Document, place: tuple[str | int, ...] = ()) -> Iterator[Place]:
    """The place of each value in a document, its own excepted."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, inner in items:
        yield [*place, key]
        yield from places_of(inner, (*place, key))


PLACES_OF = [list(places_of(document)) for document in WHOLE]


def at(document: Document, place: Place) -> Document:
    """The value at a place; None if an earlier change has removed it."""
    for key in place:
        try:
            document = document[key]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def replaced(parent: Document, key: str | int, value: Document) -> None:
    parent[key] = copy.deepcopy(value)


def removed(parent: Document, key: str | int, value: Document) -> None:  # noqa: ARG001 - a change like the others
    del parent[key]


def renamed(parent: Document, key: str | int, value: Document) -> None:
    if isinstance(parent, dict):
        parent[value if isinstance(value, str) else HOSTILE] = parent.pop(key)


def added(parent: Document, key: str | int, value: Document) -> None:
    if isinstance(parent[key], dict):
        parent[key]["added"] = copy.deepcopy(value)
    elif isinstance(parent[key], list):
        parent[key].append(copy.deepcopy(value))


def doubled(parent: Document, key: str | int, value: Document) -> None:  # noqa: ARG001 - a change like the others
    if isinstance(parent, list):
        parent.append(copy.deepcopy(parent[key]))


def many(parent: Document, key: str | int, value: Document) -> None:  # noqa: ARG001 - a change like the others
    if isinstance(parent, list):
        parent.extend([parent[key]] * 20_000)
    elif isinstance(parent[key], dict):
        parent[key].update({str(number): number for number in range(20_000)})


def named(parent: Document, key: str | int, value: Document) -> None:  # noqa: ARG001 - a change like the others
    """Many parts like this one that are all valid: each has a name and an order of its own."""
    if isinstance(parent, list) and isinstance(parent[key], dict):
        own = [name for name in ("name", "order") if name in parent[key]]
        parent.extend(parent[key] | {name: _own(name, number) for name in own} for number in range(MANY))
    elif isinstance(parent, dict) and isinstance(parent[key], dict) and parent[key]:
        first = next(iter(parent[key].values()))
        parent[key].update({f"{key} {number}": first for number in range(MANY)})


def _own(name: str, number: int) -> str | int:
    return 10_000 + number if name == "order" else f"{name} {number}"


def scaled(parent: Document, key: str | int, value: Document) -> None:
    if isinstance(parent[key], int | float) and isinstance(value, int | float):
        try:
            parent[key] *= value
        except OverflowError:
            parent[key] = value


Change = Callable[[Document, str | int, Document], None]
CHANGES: list[Change] = [replaced, removed, renamed, added, doubled, many, named, scaled]
Step = tuple[Change, Place, int | Place]
"""A change, where, and with which value: one of `VALUES`, or the one of another place."""


def steps_in(base: int) -> draw.SearchStrategy[tuple[int, list[Step]]]:
    """Up to three changes of one of the runs."""
    places = draw.sampled_from(PLACES_OF[base])
    values = draw.integers(0, len(VALUES) - 1) | places
    step = draw.tuples(draw.sampled_from([replaced, replaced, *CHANGES]), places, values)
    return draw.tuples(draw.just(base), draw.lists(step, min_size=1, max_size=3))


def changed(base: int, steps: list[Step]) -> Document:
    """One of the runs after some changes."""
    document = copy.deepcopy(WHOLE[base])
    for change, (*way, key), value in steps:
        parent = at(document, way)
        if (isinstance(parent, dict) and key in parent) or (isinstance(parent, list) and key < len(parent)):
            change(parent, key, VALUES[value] if isinstance(value, int) else at(document, value))
    return document


def shown(run: Run, base: Run, store: Store) -> Iterator[str]:
    """All that shows a run: its reports, its place in lists of runs, its comparison, its claims, its metrics."""
    text = io.StringIO()
    Console(width=200, file=text).print(
        as_terminal.render(run), as_terminal.claims(judged(run)), run_list.render(run_list.rows(store)), highlight=False
    )
    yield text.getvalue()
    limits = limits_of(run)
    yield as_html.render(run, limits)
    yield as_markdown.render(run, limits)
    yield as_csv.render(run)
    yield as_junit.render(run, limits)
    yield compared(base, run)
    yield compared(run, base)
    yield standings_of(run).model_dump_json()
    failed: list[str] = []
    index = RunIndex(store, failed.append)
    yield "\n".join(row.model_dump_json() for row in index.rows())
    metrics = index.metrics().decode()
    yield metrics
    assert failed == []
    assert list(text_string_to_metric_families(metrics))
    assert run_list.rows(store)[0]["status"] == run.status


def limits_of(run: Run) -> list[ThresholdResult]:
    """The results of a limit of each kind that the run can be judged by."""
    found = []
    for limit in map(threshold_of_run, ("p99 > 50ms", "throughput < 1000", "errors > 0", "cpu +5%")):
        with contextlib.suppress(LabError):
            check_changes([limit], run.experiment)
            found += judge_run(run, [limit], strict=False)
    return found


def compared(base: Run, run: Run) -> str:
    """The comparison of a run with another one, or why there is none."""
    try:
        return comparison.as_markdown(compare(base, [run], force=True), [])
    except LabError as error:
        return str(error)


def peak_bytes() -> int:
    """The most memory that this process has had."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A results folder with one run, which is changed again and again."""
    made = Store(tmp_path_factory.mktemp("results"))
    made.claim(NAME)
    return made


@pytest.mark.timeout(0 if EXAMPLES else 120)
@settings(
    max_examples=int(EXAMPLES or 40),
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(change=steps_in(0) | steps_in(1))
def test_any_change_is_refused_with_its_place_or_shown_whole(change, store):
    """In two seconds and 300 MB, in one line; and nothing that is shown can change a terminal or a page."""
    base, steps = change
    check_shown(changed(base, steps), BASES[base], store)


def check_shown(document: Document, base: Run, store: Store) -> None:
    """It is read in two seconds and 300 MB: refused in a line that names the file, or shown by every reader."""
    file = store.folder / NAME / RUN_FILE
    file.write_text(json.dumps(document))
    peak, began = peak_bytes(), time.process_time()
    try:
        run = find_judged(store, NAME)
    except LabError as error:
        run, refusal = None, str(error)
    assert time.process_time() - began < MOST_SECONDS
    if run is None:
        assert refusal.startswith(f"{file}: ")
        assert printable(refusal) == refusal
        assert "\n" not in refusal
        assert len(refusal) < 2000
    else:
        for text in shown(run, base, store):
            assert printable(text) == text
    assert peak_bytes() - peak < MOST_BYTES
