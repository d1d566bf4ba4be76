"""The tables of the page: figures of each group, errors, failed trials, workloads and surroundings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from clientlab import units
from clientlab.reports import table
from clientlab.reports.charts.shapes import DataTable
from clientlab.reports.html.chart_data import ChartGroup
from clientlab.results.document import Run
from clientlab.results.trial import Trial
from clientlab.workload.workload import Workload

_SECONDS = ("timeout", "duration")


def figures(group: ChartGroup) -> DataTable:
    """The table of the terminal's report."""
    return DataTable(*table.heads_and_rows(group))


def errors(run: Run) -> DataTable | None:
    """Errors by arm and kind, their share of the arm's requests, and the first example. None without errors."""
    counts: dict[tuple[str, str], int] = {}
    requests: dict[str, int] = {}
    examples: dict[tuple[str, str], str] = {}
    for trial in sorted(run.trials, key=arm_of):
        name = arm_of(trial)
        requests[name] = requests.get(name, 0) + trial.requests
        for kind, count in trial.errors.items():
            counts[name, kind] = counts.get((name, kind), 0) + count
            examples.setdefault((name, kind), trial.error_examples.get(kind, ""))
    rows = [
        [name, kind, f"{count:,}", f"{units.digits(100 * count / max(1, requests[name]))} %", examples[name, kind]]
        for (name, kind), count in counts.items()
    ]
    return DataTable(["arm", "kind", "errors", "share of requests", "example"], rows) if rows else None


def failures(run: Run) -> DataTable | None:
    """Failed trials with their reasons. None without failed trials."""
    rows = [
        [arm_of(trial), str(trial.round), trial.reason or "unknown", f"{trial.requests:,}"]
        for trial in sorted(run.trials, key=arm_of)
        if trial.status != "done"
    ]
    return DataTable(["arm", "round", "reason", "requests finished"], rows) if rows else None


def arm_of(trial: Trial) -> str:
    """The arm's name. An arm named like its strategy gets its workload, upstream and route as well."""
    parts = [part for part in (trial.workload, trial.upstream, trial.route) if part not in trial.arm]
    return f"{trial.arm} ({', '.join(parts)})" if parts and trial.arm == trial.strategy else trial.arm


def workloads(run: Run) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each workload with its fields that are set."""
    return [(name, list(_fields_of(workload))) for name, workload in run.experiment.workloads.items()]


def _fields_of(workload: Workload) -> Iterator[tuple[str, str]]:
    for field in fields(workload):
        value = getattr(workload, field.name)
        if field.name == "headers":
            yield from ((f"header {name}", text) for name, text in value.items())
        elif field.name in _SECONDS and value is not None:
            yield field.name, units.time(value)
        elif value is not None:
            plain = isinstance(value, bool | str)
            yield field.name.replace("_", " "), str(value) if plain else f"{value:,}"


def surroundings(run: Run) -> list[tuple[str, str]]:
    """The machine, its state before the run, and the software below the clients. What is unknown is left out."""
    found = run.surroundings
    limit = found.memory_limit_bytes
    threads = {None: "", True: ", two threads per core", False: ", one thread per core"}[found.smt]
    rows = [
        ("host", found.host),
        ("system", f"{found.system}, kernel {found.kernel}, {found.architecture}"),
        ("virtualization", found.virtualization),
        ("CPU", f"{found.cpu_model}; {found.cpu_count} cores{threads}, {found.cpu_usable:g} usable"),
        ("CPU governor", found.cpu_governor),
        ("memory", units.memory(found.memory_bytes) + (f", limit {units.memory(limit)}" if limit else "")),
        ("open files", f"at most {found.open_files_limit:,}"),
        ("load average", f"{found.load_average:.2f} in the minute before the run"),
        ("Python", ": ".join(filter(None, (found.python, found.python_build)))),
        ("TLS of Python", found.openssl),
        ("clock", found.clock),
        ("clientlab", ", commit ".join(filter(None, (run.clientlab, found.lab_commit)))),
    ]
    return [(name, value) for name, value in rows if value]
