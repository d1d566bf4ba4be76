"""The runs of a results folder as Prometheus metrics: `clientlab exporter --out
results`.

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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from clientlab import units
from clientlab.cluster.live_metrics import ARM_LABELS, arm_labels
from clientlab.errors import LabError
from clientlab.judging.comparison import compare, unlike
from clientlab.judging.judgement import read_judged
from clientlab.reports import change_contents as comparing
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
    *("place", "concurrency", "figure", "ratio"),
    *("p50", "p99", "cpu", "errors", "bottleneck"),
)

_FAILED = "! failed"  # sorted before the titles of cautions

Sample = tuple[str, Sequence[str], float]
"""Name of a family, values of its labels, and its own value."""


def _families() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the description and the labels of each metric, without
    ``clientlab_run_``.
    """
    ratio = (
        "times the time per request (or what ranks the arm) of the fastest of its load"
    )
    known = {
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
        "ratio": (f"How many {ratio}.", ARM_LABELS),
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
    for figure, metric in EXPORTED:
        labels = (*ARM_LABELS, "quantile") if metric.quantile else ARM_LABELS
        about = figure.description
        if metric.quantile:
            about = "Quantiles of all requests, medians over the rounds."
        known.setdefault(metric.name, (f"{about[0].upper()}{about[1:]}", labels))
        if figure.bounded is not None:
            bounds = "Lower bounds of quantiles that fall on failed requests."
            known.setdefault(metric.name_at_least, (bounds, labels))
    return known


FAMILIES = _families()


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
class _Published:
    """A run and the lines of its samples by family. `version`: of its files."""

    version: object
    run: Run | None
    lines: dict[str, str] = field(default_factory=dict)
    is_compared: bool = False


class StoredRuns:
    """The newest runs of a store in Prometheus' text format.

    The lines of a run are kept until its files change: rendering runs takes CPU time,
    which would disturb the trial that is being measured.
    """

    def __init__(self, store: Store, say: Callable[[str], None]) -> None:
        self._store = store
        self._say = say
        self._known: dict[str, _Published] = {}
        self._lock = threading.Lock()

    def render(self) -> bytes:
        """Return the metrics of all runs."""
        with self._lock:
            names = self._store.names()[-_MOST_RUNS:]
            found = [one for name in names if (one := self._read(name)).run is not None]
            self._compare(
                [one for one in found if one.run and one.run.status != "running"]
            )
            choices = _format(_choices([one.run for one in found if one.run]))
            pages = [choices, *(one.lines for one in found)]
        parts = []
        for family, (text, _) in FAMILIES.items():
            if lines := "".join(page.get(family, "") for page in pages):
                name = f"clientlab_run_{family}"
                parts.append(f"# HELP {name} {text}\n# TYPE {name} gauge\n{lines}")
        return "".join(parts).encode()

    def _read(self, name: str) -> _Published:
        """Return a run, from memory if its files have not changed."""
        try:
            version = self._store.version(name)
        except FileNotFoundError:  # removed just now
            return _Published(None, None)
        known = self._known.get(name)
        if known is None or known.version != version:
            known = self._known[name] = _Published(version, None)
            try:
                run = read_judged(self._store.find(name))
                # A copied folder has a new name.
                known.run = run.updated(run=name)
                known.lines = _format(_samples_of_run(known.run))
            except LabError as error:
                self._say(str(error))
        return known

    def _compare(self, found: Sequence[_Published]) -> None:
        """Add the changes of runs that have just ended, or that were found."""
        runs = [one.run for one in found if one.run is not None]
        for place, one in enumerate(found):
            if one.run is not None and not one.is_compared:
                one.is_compared = True
                one.lines |= _format(_changes(one.run, runs[:place]))


def _format(samples: Iterable[Sample]) -> dict[str, str]:
    """Return the lines of samples by family, without control characters."""
    lines: dict[str, list[str]] = {}
    for family, values, value in samples:
        _, names = FAMILIES[family]
        labels = ",".join(
            f'{name}="{_escape(text)}"'
            for name, text in zip(names, values, strict=True)
        )
        line = f"clientlab_run_{family}{{{labels}}} {value}\n"
        lines.setdefault(family, []).append(line)
    return {family: "".join(found) for family, found in lines.items()}


def _escape(text: str) -> str:
    """Return the value of a label as Prometheus' text format needs it."""
    plain = make_printable(text).replace("\n", " ")
    return plain.replace("\\", r"\\").replace('"', r"\"")


def _timestamp(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _choices(runs: Sequence[Run]) -> Iterator[Sample]:
    """Yield the choices of a reader, of which the newest is the last."""
    for run in runs:
        yield "choice", [run.run, run.run, run.experiment.name], _timestamp(run.created)
    if runs:
        run = max(runs, key=lambda run: run.created)
        began = _timestamp(run.created)
        yield "choice", [NEWEST_RUN, run.run, run.experiment.name], began + 1


def _samples_of_run(run: Run) -> Iterator[Sample]:
    where, about = run.surroundings, [run.run, run.experiment.name]
    machine = f"{where.cpu_model}, {where.cpu_usable:g} cores"
    yield "info", [*about, run.status, machine, where.python, where.host], 1
    yield "created_timestamp_seconds", about, _timestamp(run.created)
    ends = [
        _timestamp(one.started) + (one.figures.wall_seconds or 0) for one in run.trials
    ]
    yield "ended_timestamp_seconds", about, max(ends, default=_timestamp(run.created))
    failed = failed_for_good(run)
    done = sum(trial.status == "done" for trial in run.trials)
    left = 0 if run.status == "done" else len(find_due(run))
    for state, count in {"done": done, "failed": len(failed), "left": left}.items():
        yield "trials", [*about, state], count
    reasons = Counter((one.planned.arm, one.reason or one.status) for one in failed)
    for (name, reason), count in reasons.items():
        yield "problem", [*about, _FAILED, f"{name}: {reason}"], count
    for title, texts in reasons_for_doubt(run).items():
        for text, advice in texts:
            yield "problem", [*about, title, f"{text.rstrip('.')}; {advice}"], 1
    for name, workload in run.experiment.workloads.items():
        text = load_line(run.experiment, workload)
        yield "workload_info", [*about, name, identify(workload), text], 1
    for claim in run.claims:
        sentence = claim_sentence(claim) + claim_doubts(claim)
        value = math.nan if claim.ratio is None else claim.ratio
        ratio = units.ratio(claim.ratio, claim.interval)
        yield "claim", [*about, claim.name, sentence, claim.verdict, ratio], value
    labels = {}
    for number, arm in enumerate(run.experiment.arms, start=1):
        workload = run.experiment.workloads[arm.workload]
        names = run.run, run.experiment.name, arm.name
        labels[arm.name] = arm_labels(*names, arm, workload)
        yield "arm_info", [*labels[arm.name], f"{number:02}"], 1
    rows = [(group, row) for group in groups_of(run) for row in group.rows]
    for place, (group, row) in enumerate(rows, start=1):
        for name, more, value in _samples_of_arm(group, row, place):
            yield name, [*labels[row.planned.arm], *more], value


def _samples_of_arm(
    group: Group, row: Row, place: int
) -> Iterator[tuple[str, list[str], float]]:
    """Yield the samples of an arm, with the labels that it has beside the arm's own."""
    for figure, metric in EXPORTED:
        if (value := row.figures[figure.key]) is not None:
            is_bound = figure.key in row.bounds
            name = metric.name_at_least if is_bound else metric.name
            yield name, [metric.quantile] if metric.quantile else [], value
    if row.ratio is not None:
        yield "ratio", [], row.ratio.value
        if row.ratio.interval is not None:
            low, high = row.ratio.interval
            yield "ratio_low", [], low
            yield "ratio_high", [], high
    yield "rounds", [], len(row.trials)
    yield "concurrency", [], row.planned.concurrency
    leading = group.leading
    heading = leading.heading or leading.label
    speed = 1.0 if row.fastest else 0.0  # without a ratio, nobody knows how fast it is
    if row.ratio is not None and not row.shortfall:
        speed = 1 / row.ratio.value
    texts = [
        f"{place:03}",
        str(row.planned.concurrency),
        f"{row.text(leading)} {heading}",
        row.ratio_text,
        *(row.text(BY_KEY[key]) for key in ("p50", "p99", "cpu")),
        row.text(BY_KEY["errors"]) if row.errors else "",
        row.bottleneck,
    ]
    yield "standing", texts, speed


def _changes(run: Run, earlier: Sequence[Run]) -> Iterator[Sample]:
    """Yield how a run differs from earlier ones of the same arms and workloads."""
    about = [run.run, run.experiment.name]
    when = _shorten(run.run)
    alike = [one for one in earlier if not any(unlike(one, run))]
    for base in alike[-_MOST_BASELINES:]:
        comparison = compare(base, [run], earlier=earlier)
        [compared] = comparison.others
        for arm in comparison.compared_arms():
            for figure in comparison.figures:
                change = compared.changes[arm][figure.key]
                if comparing.is_known(change):
                    _, verdict, estimate = comparing.change_cells(change)
                    texts = [when, arm, figure.key, f"{verdict} {estimate}"]
                    value = math.nan if change.ratio is None else change.ratio.value
                    yield "change", [*about, base.run, *texts], value
        for one in compared.differences:
            texts = [one.part, one.before or "none", one.after or "none"]
            yield "difference", [*about, base.run, *texts], 1


def _shorten(run: str) -> str:
    """Return the name that a user gave to a run, or when it began: 11-28 14:17."""
    if found := re.match(r"\d{4}(\d\d)(\d\d)-(\d\d)(\d\d)\d", run):
        return "{}-{} {}:{}".format(*found.groups())
    return run
