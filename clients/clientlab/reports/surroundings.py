"""Where a run was measured, and how it is run again: machine, software, environments, workloads and the command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from clientlab import units
from clientlab.reports.sections import Command, Facts, Lines, Part, Report, Section
from clientlab.results.document import Environment, Run
from clientlab.results.machine import is_free_threaded
from clientlab.workload.workload import Workload
from clientlab.workload.written import Written

_MOST = 8
"""Packages in a line about an environment. The page has all of them."""

_SECONDS = ("timeout", "deadline", "duration", "max_late")

_Pairs = list[tuple[str, str]]


def surroundings(report: Report) -> Section[Part]:
    """The machine, the software below the clients, and each environment. Formats of text have a line for each."""
    run, found = report.run, report.run.surroundings
    lists = [
        ("", _machine(run)),
        ("Libraries", list(found.libraries.items())),
        ("What the libraries require", list((found.dependencies or {}).items())),
        ("What is compiled into the libraries", list((found.compiled or {}).items())),
        ("Servers", list(found.programs.items())),
    ]
    pinned = [] if found.placement is None else [f"pinned: {found.placement}"]
    brief = [
        f"system: {found.system} {found.kernel}, {found.architecture}",
        *pinned,
        *([f"GIL in trials: {state}"] if (state := _gil_of_own(run)) else []),
        *(f"environment {line}" for line in environment_lines(run)),
    ]
    environments = [(f"Environment {name}", _packages(one)) for name, one in (found.environments or {}).items()]
    parts: list[Part] = [
        Facts([(title, pairs) for title, pairs in lists if pairs], brief=brief),
        Facts(environments, noun="environment", shown=0),
    ]
    return Section("surroundings", "Surroundings", parts, folded=True)


def reproduction(report: Report) -> Section[Part]:
    """The command that makes the run again, its seed, and its workloads."""
    run = report.run
    plan = run.experiment
    rounds = _counted(max([1, *(trial.round for trial in run.trials)]), "round")
    if run.decided:
        rounds += (
            f", of which an arm left when its comparisons were decided, after {min(run.decided.values())} at least"
        )
    arms = _counted(len(plan.arms), "arm")
    line = (
        f"With clientlab {run.clientlab}: {rounds}, seed {plan.seed}, {arms}. --seed {plan.seed} repeats the order of "
        "the trials, and the delays, bodies and arrivals of each round."
    )
    workloads = [(f"Workload {name}", list(_fields_of(workload))) for name, workload in plan.workloads.items()]
    parts: list[Part] = [Command((plan.command,)), Lines([line]), Facts(workloads, noun="workload", shown=4)]
    return Section("again", "Reproduce this run", parts, label="Reproduce")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def environment_lines(run: Run) -> list[str]:
    """A line for each environment: its name, its Python, its GIL, and the versions of the packages that differ."""
    found = run.surroundings.environments or {}
    differing = _differing(found)
    return [
        f"{name}: {', '.join([one.python, *_gil(run, name), *_shown(one, differing)])}" for name, one in found.items()
    ]


def _machine(run: Run) -> _Pairs:
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
        ("GIL in trials", _gil_of_own(run)),
        ("TLS of Python", found.openssl),
        ("clock", found.clock),
        ("clientlab", ", commit ".join(filter(None, (run.clientlab, found.lab_commit)))),
    ]
    return [(name, value) for name, value in rows if value]


def _fields_of(workload: Workload) -> Iterator[tuple[str, str]]:
    for field in fields(workload):
        value = getattr(workload, field.name)
        if field.name == "headers":
            yield from ((f"header {name}", text) for name, text in value.items())
        elif field.name in _SECONDS and value is not None:
            yield field.name, units.time(value)
        elif field.name == "rate" and value is not None:
            yield field.name, f"{units.rate(value)}/s"
        elif value is not None:
            plain = isinstance(value, bool | str | Written)
            yield field.name.replace("_", " "), str(value) if plain else f"{value:,}"


def _packages(environment: Environment) -> _Pairs:
    """Everything that is known of an environment."""
    own = [
        ("folder", environment.folder),
        ("Python", f"{environment.python}: {environment.python_build}"),
        ("TLS of Python", environment.openssl or units.UNKNOWN),
    ]
    compiled = [(f"compiled into {name}", text) for name, text in environment.compiled.items()]
    return [*own, *environment.packages.items(), *compiled]


def _gil(run: Run, name: str) -> list[str]:
    """Of an environment whose Python was built for free threading: in which arms which module switched the GIL on."""
    if not is_free_threaded((run.surroundings.environments or {})[name].python_build):
        return []
    state = _gil_in_trials(run, name)
    return ["free-threading", *([f"GIL {state}"] if state else [])]


def _gil_in_trials(run: Run, environment: str | None) -> str:
    """``on`` or ``off``, of which arms if they differ, and who switched it on; empty if no trial ended."""
    trials = [trial for trial in run.trials if trial.environment == environment and trial.gil is not None]
    if not trials:
        return ""
    locked, free = (list(dict.fromkeys(trial.arm for trial in trials if trial.gil is on)) for on in (True, False))
    where = f" in {', '.join(locked)}" if locked and free else ""
    modules = dict.fromkeys(trial.gil_switched_by for trial in trials if trial.gil_switched_by)
    by = f", switched on by {', '.join(modules)}" if modules else ""
    return f"{'on' if locked else 'off'}{where}{by}"


def _gil_of_own(run: Run) -> str:
    """The same of trials in the lab's own Python, if that was built for free threading; else empty."""
    return _gil_in_trials(run, None) if is_free_threaded(run.surroundings.python_build) else ""


def _differing(environments: dict[str, Environment]) -> list[str]:
    """The packages that do not have one version in all environments."""
    tables = [one.packages for one in environments.values()]
    names = dict.fromkeys(name for table in tables for name in sorted(table))
    return [name for name in names if len({table.get(name) for table in tables}) > 1]


def _shown(environment: Environment, differing: list[str]) -> list[str]:
    shown = [f"{name} {environment.packages.get(name, units.UNKNOWN)}" for name in differing[:_MOST]]
    return [*shown, f"and {len(differing) - _MOST} more"] if len(differing) > _MOST else shown
