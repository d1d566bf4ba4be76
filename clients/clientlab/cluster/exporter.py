"""Runs of a results folder as Prometheus metrics: `clientlab exporter --out results`.

A run has what its report shows: the figures of each arm over the rounds, its ratio to
the fastest arm, what went wrong, and the changes since earlier runs of the same
experiment. An unknown figure has no sample. What is a text in the report is the value
of a label.
"""

from __future__ import annotations

import math
import re
import socket
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from clientlab import units
from clientlab.cluster.live_metrics import ARM_LABELS, arm_labels
from clientlab.errors import LabError
from clientlab.judging.comparison import compare, unlike
from clientlab.judging.judgement import read_judged
from clientlab.reports.change_contents import change_cells, is_known
from clientlab.reports.contents import claim_doubts, claim_sentence
from clientlab.reports.headline import load_line, reasons_for_doubt
from clientlab.reports.rows import Group, Row, groups_of
from clientlab.results.document import Run, failed_for_good
from clientlab.results.figures import BY_KEY, EXPORTED
from clientlab.results.store import Store
from clientlab.running.schedule import find_due
from clientlab.text import make_printable
from clientlab.workload.workload import identify

NEWEST_RUN = "newest run"
"""The choice of the run that began last. No run has a name with a space."""

_MOST_RUNS = 50  # that are published; older ones are only in their files
_MOST_BASELINES = 10  # earlier runs that each run is compared with

_ABOUT = ("run", "experiment")
_STANDING = (
    "place",
    "concurrency",
    "figure",
    "ratio",
    "p50",
    "p99",
    "cpu",
    "errors",
    "bottleneck",
)

_FAILED = "! failed"  # sorted before the titles of cautions

Sample = tuple[str, Sequence[str], float]
"""Name of a family, values of its labels, and its own value."""


_OF_RUNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "info": ("A run.", (*_ABOUT, "status", "machine", "python", "host")),
    "choice": ("When a run began; also for the newest one.", ("choice", *_ABOUT)),
    "created_timestamp_seconds": ("When a run began.", _ABOUT),
    "ended_timestamp_seconds": ("When its last trial ended, or now.", _ABOUT),
    "trials": ("Trials of a run: done, failed or left.", (*_ABOUT, "state")),
    "problem": (
        "How often something went wrong, or 1 for a reason to doubt a number.",
        (*_ABOUT, "kind", "text"),
    ),
    "workload_info": (
        "A workload of a run, in words.",
        (*_ABOUT, "workload", "workload_id", "text"),
    ),
    "arm_info": ("An arm of a run.", (*ARM_LABELS, "number")),
    "standing": (
        "1 over its ratio (0 without one), and how the report shows the arm.",
        (*ARM_LABELS, *_STANDING),
    ),
    "ratio": (
        (
            "How many times the time per request (or what ranks the arm) of the fastest"
            " of its load."
        ),
        ARM_LABELS,
    ),
    "ratio_low": ("Lower end of the 95 % interval of the ratio.", ARM_LABELS),
    "ratio_high": ("Upper end of that interval.", ARM_LABELS),
    "rounds": ("Finished trials of an arm: its rounds so far.", ARM_LABELS),
    "concurrency": ("Requests of an arm in flight at once.", ARM_LABELS),
    "change": (
        "Ratio to an earlier run of the same workloads; NaN without one.",
        (*_ABOUT, "baseline", "when", "arm", "figure", "text"),
    ),
    "difference": (
        "1 for a part of the surroundings that differs from those of the baseline.",
        (*_ABOUT, "baseline", "part", "before", "after"),
    ),
    "claim": (
        "b's figure over a's of a claim; NaN without one.",
        (*_ABOUT, "claim", "sentence", "verdict", "text"),
    ),
}


def _add_figures() -> dict[str, tuple[str, tuple[str, ...]]]:
    families = dict(_OF_RUNS)
    for figure, metric in EXPORTED:
        labels: tuple[str, ...] = ARM_LABELS
        about = f"{figure.description[0].upper()}{figure.description[1:]}"
        if metric.quantile:
            labels = (*ARM_LABELS, "quantile")
            about = "Quantiles of all requests, medians over the rounds."
        families.setdefault(metric.name, (about, labels))
        if figure.bounded is not None:
            bounds = "Lower bounds of quantiles that fall on failed requests."
            families.setdefault(metric.name_at_least, (bounds, labels))
    return families


FAMILIES = _add_figures()
"""Description and labels of each metric, without ``clientlab_run_``."""


def make_server(
    store: Store, host: str, port: int, say: Callable[[str], None]
) -> ThreadingHTTPServer:
    """Return a server of a store's metrics.

    `say` gets a line for each run that cannot be read. Raise LabError.
    """
    runs = StoredRuns(store, say)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = runs.render()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE_LATEST)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
            """Log no scrape."""

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    runs.render()  # of many runs, the first one takes longer than a scrape may
    try:
        return Server((host, port), Handler)
    except OSError as error:
        problem = f"--host {host} --port {port}: {error.strerror}; choose another"
        raise LabError(problem) from error


@dataclass
class _Page:
    """A run, and the lines of its samples by family."""

    run: Run
    lines: dict[str, str]
    is_compared: bool = False


class StoredRuns:
    """The newest runs of a store in Prometheus' text format.

    The lines of a run are kept until its files change: rendering runs takes CPU time,
    which would disturb the trial that is being measured.
    """

    def __init__(self, store: Store, say: Callable[[str], None]) -> None:
        self._store = store
        self._say = say
        self._versions: dict[str, object] = {}
        self._pages: dict[str, _Page | None] = {}
        self._lock = threading.Lock()

    def render(self) -> bytes:
        """Return the metrics of all runs."""
        with self._lock:
            names = self._store.names()[-_MOST_RUNS:]
            pages = list(filter(None, map(self._read, names)))
            ended = [page for page in pages if page.run.status != "running"]
            self._compare(ended)
            choices = _choices([page.run for page in pages])
            blocks = [_format(choices), *(page.lines for page in pages)]
        parts = []
        for family, (about, _) in FAMILIES.items():
            text = "".join(lines.get(family, "") for lines in blocks)
            if text:
                name = f"clientlab_run_{family}"
                parts.append(f"# HELP {name} {about}\n# TYPE {name} gauge\n{text}")
        return "".join(parts).encode()

    def _read(self, name: str) -> _Page | None:
        """Return the page of a run, from memory if its files have not changed.

        Return None if the run cannot be read.
        """
        try:
            version = self._store.version(name)
        except FileNotFoundError:  # removed just now
            return None
        if name not in self._pages or self._versions[name] != version:
            self._versions[name] = version
            self._pages[name] = None
            try:
                run = read_judged(self._store.find(name))
                run = run.updated(run=name)  # a copied folder has a new name
                self._pages[name] = _Page(run, _format(_samples_of_run(run)))
            except LabError as error:
                self._say(str(error))
        return self._pages[name]

    def _compare(self, pages: Sequence[_Page]) -> None:
        """Add the changes of runs that have just ended, or that were found."""
        runs = [page.run for page in pages]
        for place, page in enumerate(pages):
            if not page.is_compared:
                page.is_compared = True
                page.lines |= _format(_changes(page.run, runs[:place]))


def _format(samples: Iterable[Sample]) -> dict[str, str]:
    """Return the lines of samples by family, without control characters."""
    lines: dict[str, str] = defaultdict(str)
    for family, texts, value in samples:
        _, names = FAMILIES[family]
        pairs = zip(names, texts, strict=True)
        labels = ",".join(f'{name}="{_escape(text)}"' for name, text in pairs)
        lines[family] += f"clientlab_run_{family}{{{labels}}} {value}\n"
    return lines


def _escape(text: str) -> str:
    """Return the value of a label as Prometheus' text format needs it."""
    plain = make_printable(text).replace("\n", " ")
    return plain.replace("\\", r"\\").replace('"', r"\"")


def _timestamp(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _choices(runs: Sequence[Run]) -> Iterator[Sample]:
    """Yield the choices of a reader, of which the newest is the last."""
    for run in runs:
        began = _timestamp(run.created)
        yield "choice", [run.run, run.run, run.experiment.name], began
    if runs:
        run = max(runs, key=lambda run: run.created)
        began = _timestamp(run.created)
        yield "choice", [NEWEST_RUN, run.run, run.experiment.name], began + 1


def _samples_of_run(run: Run) -> Iterator[Sample]:
    about = [run.run, run.experiment.name]
    for samples_of in (_describe_state, _find_problems, _describe_plan):
        for name, texts, value in samples_of(run):
            yield name, [*about, *texts], value
    labels_by_arm = {}
    for number, arm in enumerate(run.experiment.arms, start=1):
        workload = run.experiment.workloads[arm.workload]
        labels = [*about, *arm_labels(arm.name, arm, workload)]
        labels_by_arm[arm.name] = labels
        yield "arm_info", [*labels, f"{number:02}"], 1
    rows = [(group, row) for group in groups_of(run) for row in group.rows]
    for place, (group, row) in enumerate(rows, start=1):
        labels = labels_by_arm[row.planned.arm]
        for name, texts, value in _samples_of_arm(group, row, place):
            yield name, [*labels, *texts], value


# The following samples lack the labels that those of a run, or of an arm, share.


def _describe_state(run: Run) -> Iterator[Sample]:
    machine = run.surroundings
    cpu = f"{machine.cpu_model}, {machine.cpu_usable:g} cores"
    yield "info", [run.status, cpu, machine.python, machine.host], 1
    created = _timestamp(run.created)
    yield "created_timestamp_seconds", [], created
    ends = [_timestamp(trial.started) + trial.wall_seconds for trial in run.trials]
    yield "ended_timestamp_seconds", [], max(ends, default=created)
    done = [trial for trial in run.trials if trial.status == "done"]
    left = [] if run.status == "done" else find_due(run)
    yield "trials", ["done"], len(done)
    yield "trials", ["failed"], len(failed_for_good(run))
    yield "trials", ["left"], len(left)


def _find_problems(run: Run) -> Iterator[Sample]:
    reasons = Counter(
        f"{trial.planned.arm}: {trial.reason or trial.status}"
        for trial in failed_for_good(run)
    )
    for reason, count in reasons.items():
        yield "problem", [_FAILED, reason], count
    for title, doubts in reasons_for_doubt(run).items():
        for text, advice in doubts:
            yield "problem", [title, f"{text.rstrip('.')}; {advice}"], 1


def _describe_plan(run: Run) -> Iterator[Sample]:
    for name, workload in run.experiment.workloads.items():
        text = load_line(run.experiment, workload)
        yield "workload_info", [name, identify(workload), text], 1
    for claim in run.claims:
        sentence = claim_sentence(claim) + claim_doubts(claim)
        value = math.nan if claim.ratio is None else claim.ratio
        ratio = units.ratio(claim.ratio, claim.interval)
        yield "claim", [claim.name, sentence, claim.verdict, ratio], value


def _samples_of_arm(group: Group, row: Row, place: int) -> Iterator[Sample]:
    for figure, metric in EXPORTED:
        value = row.figures[figure.key]
        if value is not None:
            is_bound = figure.key in row.bounds
            name = metric.name_at_least if is_bound else metric.name
            labels = [metric.quantile] if metric.quantile else []
            yield name, labels, value
    if row.ratio is not None:
        yield "ratio", [], row.ratio.value
        if row.ratio.interval is not None:
            low, high = row.ratio.interval
            yield "ratio_low", [], low
            yield "ratio_high", [], high
    yield "rounds", [], len(row.trials)
    yield "concurrency", [], row.planned.concurrency
    leading = group.order.leading
    texts = [
        f"{place:03}",
        str(row.planned.concurrency),
        f"{row.text(leading)} {leading.heading or leading.label}",
        row.ratio_text,
        row.text(BY_KEY["p50"]),
        row.text(BY_KEY["p99"]),
        row.text(BY_KEY["cpu"]),
        row.text(BY_KEY["errors"]) if row.errors else "",
        row.bottleneck,
    ]
    speed = 1.0 if row.fastest else 0.0  # without a ratio, nobody knows how fast it is
    if row.ratio is not None and not row.shortfall:
        speed = 1 / row.ratio.value
    yield "standing", texts, speed


def _changes(run: Run, earlier: Sequence[Run]) -> Iterator[Sample]:
    """Yield how a run differs from earlier ones of the same arms and workloads."""
    when = _shorten(run.run)
    alike = [base for base in earlier if not any(unlike(base, run))]
    for base in alike[-_MOST_BASELINES:]:
        about = [run.run, run.experiment.name, base.run]
        comparison = compare(base, [run], earlier=earlier)
        [compared] = comparison.others
        for arm in comparison.compared_arms():
            for key, change in compared.changes[arm].items():
                if is_known(change):
                    _, verdict, estimate = change_cells(change)
                    labels = [*about, when, arm, key, f"{verdict} {estimate}"]
                    value = math.nan if change.ratio is None else change.ratio.value
                    yield "change", labels, value
        for difference in compared.differences:
            before = difference.before or "none"
            after = difference.after or "none"
            yield "difference", [*about, difference.part, before, after], 1


def _shorten(run: str) -> str:
    """Return the name that a user gave to a run, or when it began: 11-28 14:17."""
    began = re.match(r"\d{4}(\d\d)(\d\d)-(\d\d)(\d\d)\d", run)
    if began is None:
        return run
    month, day, hour, minute = began.groups()
    return f"{month}-{day} {hour}:{minute}"
