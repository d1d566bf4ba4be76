"""The tables of the page: figures of each group, errors, failed trials, workloads and surroundings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from clientlab import units
from clientlab.reports import capacity, overload, partial, table
from clientlab.reports.charts.shapes import DataTable
from clientlab.reports.html.chart_data import ChartGroup
from clientlab.results.document import Run
from clientlab.workload.arrivals import rate_of
from clientlab.workload.workload import Workload

_SECONDS = ("timeout", "deadline", "duration", "max_late")


def figures(group: ChartGroup) -> DataTable:
    """The table of the terminal's report."""
    return DataTable(*table.heads_and_rows(group))


def capacities(run: Run) -> list[tuple[str, DataTable]]:
    """Title and table of each group of a search for capacities; none in other runs."""
    return [(title, DataTable(list(capacity.HEADS), list(map(list, rows)))) for title, rows in capacity.tables(run)]


def overloads(run: Run) -> DataTable | None:
    """What overloads did to each arm; None in a run without them."""
    rows = overload.rows(run)
    return DataTable(list(overload.HEADS), list(map(list, rows))) if rows else None


def errors(run: Run) -> DataTable | None:
    """Errors by arm and kind, their share of the arm's requests, and the first example. None without errors.

    Those of trials that were ended early stand beside the reason of their end.
    """
    counts: dict[tuple[str, str], int] = {}
    requests: dict[str, int] = {}
    examples: dict[tuple[str, str], str] = {}
    for trial in sorted((trial for trial in run.trials if not trial.partial), key=partial.arm_of):
        name = partial.arm_of(trial)
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
    """Failed trials with their reasons, and what was finished of those that were ended early. None without any."""
    heads = ["arm", "round", "reason", *partial.HEADS[2:-1]]
    unknown = (units.UNKNOWN,) * (len(heads) - 4)
    rows = [
        [
            partial.arm_of(trial),
            str(trial.round),
            trial.reason or "unknown",
            *(partial.cells(run, trial) if trial.requests else ("0", *unknown)),
        ]
        for trial in sorted(run.trials, key=partial.arm_of)
        if trial.status != "done"
    ]
    return DataTable(heads, rows) if rows else None


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
        elif field.name == "rate" and value is not None:
            yield field.name, f"{units.rate(rate_of(value))}/s"
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
        ("pinned", found.placement and str(found.placement)),
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
