"""What stands in words and tables: the figures of each way, errors, failed trials, workloads and surroundings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from clientlab.reports import table, units
from clientlab.reports.html.entries import Way
from clientlab.reports.html.plot import Figures
from clientlab.runs.document import Run, Trial
from clientlab.workload import Workload

_SECONDS = ("timeout", "duration")


def figures(way: Way) -> Figures:
    """The terminal's table: the same columns and cells."""
    columns = list(table.headed_cells(way.group))
    names = [entry.name for entry in way.entries]
    cells = zip(*(cells for _, cells in columns), strict=True)
    return Figures(
        ["strategy", *(heading for heading, _ in columns)],
        [[name, *row] for name, row in zip(names, cells, strict=True)],
    )


def errors(run: Run) -> Figures | None:
    """Errors by arm and kind with how many of its requests they were, and the first example; None without any."""
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
    return Figures(["arm", "kind", "errors", "of its requests", "an example"], rows) if rows else None


def failures(run: Run) -> Figures | None:
    """Failed trials and why; None without any."""
    rows = [
        [arm_of(trial), str(trial.round), trial.reason or "no reason is known", f"{trial.requests:,}"]
        for trial in sorted(run.trials, key=arm_of)
        if trial.status == "failed"
    ]
    return Figures(["arm", "round", "reason", "requests finished"], rows) if rows else None


def arm_of(trial: Trial) -> str:
    """The arm's name, with the way where that does not hold it."""
    way = [word for word in (trial.workload, trial.upstream, trial.route) if word not in trial.arm]
    return f"{trial.arm} ({', '.join(way)})" if way and trial.arm == trial.strategy else trial.arm


def workloads(run: Run) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each workload with the fields that are set."""
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
    """The machine and its state before the run."""
    found = run.surroundings
    limit = found.memory_limit_bytes
    return [
        ("host", found.host),
        ("system", f"{found.system}, kernel {found.kernel}, {found.architecture}"),
        ("CPU", f"{found.cpu_model}; {found.cpu_count} cores, {found.cpu_usable:g} usable"),
        ("memory", units.memory(found.memory_bytes) + (f", limit {units.memory(limit)}" if limit else "")),
        ("open files", f"{found.open_files_limit:,} at most"),
        ("load average", f"{found.load_average:.2f} over the minute before the run"),
        ("Python", found.python),
        ("clock", found.clock),
    ]
