"""Any change of a run document: it is refused with its place, or read; then all that shows runs can show it.

CLIENTLAB_PROPERTY_EXAMPLES sets how many changed documents are tried, other ones each time. Without it, the same forty
are tried in each run of the tests.
"""

from __future__ import annotations

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
from clientlab.judging.comparison import compare
from clientlab.judging.judgement import find_judged
from clientlab.printable import printable
from clientlab.reports import as_csv, as_junit, as_markdown, comparison, run_list, table
from clientlab.reports.claims import verdicts
from clientlab.reports.html import page
from clientlab.results.document import Run
from clientlab.results.plan import Claim
from clientlab.results.store import RUN_FILE, Store
from clientlab.results.trial import InFlight, Noise, ServerUse, Trial
from clientlab.service.run_index import RunIndex
from clientlab.service.standings import standings_of
from clients.documents import a_failed_trial, a_run
from clients.report_runs import PLACES, a_measured_trial, sweep_arms, with_claims

EXAMPLES = os.environ.get("CLIENTLAB_PROPERTY_EXAMPLES")
MOST_SECONDS = 2.0
MOST_BYTES = 300e6

NAME = "20240506-070809-run-abcd"

Document = Any
Place = list[str | int]

HOSTILE = "\x1b]0;title\x07\x9b31m\u202e<script>\r\n|=1+1\ud800"
NUMBERS = [
    0,
    1,
    -1,
    5,
    10**9,
    -(2**63),
    10**30,
    10**400,
    0.5,
    -0.5,
    1e-320,
    1e308,
    -1e308,
    math.nan,
    math.inf,
    -math.inf,
]
TEXTS = [
    "",
    "1",
    "done",
    "lost",
    "running",
    "0001-01-01",
    "9999-12-31T23:59:59-23:59",
    "../../etc/passwd",
    "x" * 100_000,
]
PARTS = [[], {}, [[]], [None], {"": ""}, {HOSTILE: HOSTILE}, {"a": 1e308}, [1, 2, 3]]
VALUES = [None, True, False, HOSTILE, "9" * 5000, *NUMBERS, *TEXTS, *PARTS]


def whole_run() -> Run:
    """A run with all that a document can hold: claims of each kind, a sweep, errors, failures, noise."""
    use = ServerUse(cpu_seconds=0.5, requests=400, connections=3, held_seconds=1.0, processes=2, slots=8, cores=2.0)
    noise = Noise(
        seconds=1.0, others_cpu_seconds=0.1, steal_seconds=0.0, cpu_pressure_seconds=0.1, run_delay_seconds=0.2
    )
    more = {
        "upstream_use": use, "proxy_use": use, "noise": noise, "busy": {"client": 0.9, "upstream": 0.3},
        "in_flight": InFlight(client=3.0, proxy=2.0, upstream=1.0), "concurrency": 4,
    }  # fmt: skip
    trials = [
        a_measured_trial(name, number, wall + number / 10, route=route, arm=f"{name} ({route})", **more)
        for name, wall in (("urllib3", 1.0), ("pycurl", 2.0))
        for number in (1, 2, 3)
        for route in ("direct", "proxy")
    ]
    trials[-1] = trials[-1].model_copy(update={"errors": {"reset": 3}, "error_examples": {"reset": "by peer"}})
    swept = [
        a_measured_trial("aiohttp@semaphore", number, 8 / place + place / 8, workload=f"w{place}", arm=f"sem{place}")
        for place in PLACES[:3]
        for number in (1, 2)
    ]
    two = {"a": "urllib3 (direct)", "b": "pycurl (direct)"}
    claims = [
        Claim(name="one", text="urllib3 is faster", kind="less", **two),
        Claim(name="two", text="requests is faster", kind="ratio", band=(0.8, 1.25), published="2 s", **two),
        Claim(name="three", text="steady", kind="spread", control=True, **two),
        Claim(name="four", text="narrower", kind="narrower", c="pycurl (proxy)", d="urllib3 (proxy)", **two),
    ]
    run = a_run(*trials, *swept, a_failed_trial("httpx", "it could not be started"), precision=0.03)
    sweep = {arm.name: arm for arm in sweep_arms()[:3]}
    arms = [sweep.get(arm.name, arm) for arm in run.experiment.arms]
    optimum = Claim(name="five", text="optimum", kind="optimum", arms=list(sweep))
    plan = run.experiment.model_copy(update={"arms": arms, "claims": [*claims, optimum]})
    whole = with_claims(run.model_copy(update={"experiment": plan}))
    # A course of sixty slices in each trial would be nine tenths of the document, and of its places.
    return whole.model_copy(update={"trials": [shorter(trial) for trial in whole.trials]})


def shorter(trial: Trial) -> Trial:
    """The trial with two slices of its course."""
    return trial.model_copy(update={"over_time": trial.over_time[:2]})


BASE = whole_run()
WHOLE = json.loads(BASE.model_dump_json())


def places_of(document: Document, place: tuple[str | int, ...] = ()) -> Iterator[Place]:
    """The place of each value in a document, its own excepted."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, inner in items:
        yield [*place, key]
        yield from places_of(inner, (*place, key))


PLACES_OF = list(places_of(WHOLE))


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


def scaled(parent: Document, key: str | int, value: Document) -> None:
    if isinstance(parent[key], int | float) and isinstance(value, int | float):
        try:
            parent[key] *= value
        except OverflowError:
            parent[key] = value


Change = Callable[[Document, str | int, Document], None]
CHANGES: list[Change] = [replaced, removed, renamed, added, doubled, many, scaled]
Step = tuple[Change, Place, int | Place]
"""A change, where, and with which value: one of `VALUES`, or the one of another place."""

STEPS = draw.lists(
    draw.tuples(
        draw.sampled_from([replaced, *CHANGES]),
        draw.sampled_from(PLACES_OF),
        draw.integers(0, len(VALUES) - 1) | draw.sampled_from(PLACES_OF),
    ),
    min_size=1,
    max_size=3,
)


def changed(steps: list[Step]) -> Document:
    """The whole run after some changes."""
    document = copy.deepcopy(WHOLE)
    for change, (*way, key), value in steps:
        parent = at(document, way)
        if (isinstance(parent, dict) and key in parent) or (isinstance(parent, list) and key < len(parent)):
            change(parent, key, VALUES[value] if isinstance(value, int) else at(document, value))
    return document


def shown(run: Run, store: Store) -> Iterator[str]:
    """All that shows a run: its reports, its place in lists of runs, its comparison, its metrics."""
    text = io.StringIO()
    Console(width=200, file=text).print(table.render(run), verdicts(run.claims), highlight=False)
    yield text.getvalue()
    yield page.render(run)
    yield as_markdown.render(run)
    yield as_csv.render(run)
    yield as_junit.render(run, [])
    yield compared(run)
    yield standings_of(run).model_dump_json()
    failed: list[str] = []
    index = RunIndex(store, failed.append)
    yield "\n".join(row.model_dump_json() for row in index.rows())
    metrics = index.metrics().decode()
    yield metrics
    assert failed == []
    assert list(text_string_to_metric_families(metrics))
    assert run_list.rows(store)[0]["status"] == run.status


def compared(run: Run) -> str:
    """The comparison of the run with the unchanged one, or why there is none."""
    try:
        return comparison.as_markdown(compare(BASE, [run], force=True), [])
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
@given(steps=STEPS)
def test_any_change_is_refused_with_its_place_or_shown_whole(steps, store):
    """In two seconds and 300 MB, in one line; and nothing that is shown can change a terminal or a page."""
    file = store.folder / NAME / RUN_FILE
    file.write_text(json.dumps(changed(steps)))
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
        for text in shown(run, store):
            assert printable(text) == text
    assert peak_bytes() - peak < MOST_BYTES
