"""Where a run was measured, and how to run it again: machine, software, environments, workloads and the command."""

from __future__ import annotations

from clientlab import units
from clientlab.reports.headline import load_lines
from clientlab.reports.sections import Command, Facts, Lines, Part, Report, Section
from clientlab.results.document import Environment, Run
from clientlab.results.machine import is_free_threaded

_MOST_PACKAGES = 8
"""In a line about an environment. The page has all of them."""


def surroundings(report: Report) -> Section:
    """Return the machine, the software below the clients, and each environment. Text formats have a line for each."""
    run, found = report.run, report.run.surroundings
    lists = {
        "": _machine(run),
        "Libraries": found.libraries,
        "What the libraries require": found.dependencies,
        "What is compiled into the libraries": found.compiled,
        "Servers": found.programs,
        **{f"Environment {name}": _packages(one) for name, one in (found.environments or {}).items()},
    }
    brief = [f"system: {found.system} {found.kernel}, {found.architecture}"]
    brief += [] if found.placement is None else [f"pinned: {found.placement}"]
    brief += [f"environment {line}" for line in environment_lines(run)]
    facts = Facts([(title, list(facts.items())) for title, facts in lists.items() if facts], brief=brief)
    return Section("surroundings", "Surroundings", [facts], folded=True)


def reproduction(report: Report) -> Section:
    """Return the command that makes the run again, its seed, and what its workloads send."""
    run, plan = report.run, report.run.experiment
    rounds = max([1, *(trial.round for trial in run.trials)])
    stopped = f" (decided arms stopped early, the first after {min(run.decided.values())})" if run.decided else ""
    line = (
        f"With clientlab {run.clientlab}: rounds: {rounds}{stopped}, arms: {len(plan.arms)}, seed: {plan.seed}. "
        f"--seed {plan.seed} repeats the order of the trials, and the delays, bodies and arrivals of each round."
    )
    parts: list[Part] = [Command((plan.command,)), Lines([line, *load_lines(plan)])]
    return Section("again", "Reproduce this run", parts, label="Reproduce")


def _machine(run: Run) -> dict[str, str]:
    """Return the machine, its state before the run, and the lab's Python. What is unknown is left out."""
    found = run.surroundings
    limit = found.memory_limit_bytes
    threads = {None: "", True: ", two threads per core", False: ", one thread per core"}[found.smt]
    facts = {
        "host": found.host,
        "system": f"{found.system}, kernel {found.kernel}, {found.architecture}",
        "virtualization": found.virtualization,
        "CPU": f"{found.cpu_model}; {found.cpu_count} cores{threads}, {found.cpu_usable:g} usable",
        "pinned": found.placement and str(found.placement),
        "CPU governor": found.cpu_governor,
        "memory": units.memory(found.memory_bytes) + (f", limit {units.memory(limit)}" if limit else ""),
        "open files": f"at most {found.open_files_limit:,}",
        "load average": f"{found.load_average:.2f} in the minute before the run",
        "Python": ": ".join(filter(None, (found.python, found.python_build))),
        "TLS of Python": found.openssl,
        "clock": found.clock,
        "clientlab": ", commit ".join(filter(None, (run.clientlab, found.lab_commit))),
    }
    return {name: value for name, value in facts.items() if value}


def _packages(environment: Environment) -> dict[str, str]:
    return {
        "folder": environment.folder,
        "Python": f"{environment.python}: {environment.python_build}",
        "TLS of Python": environment.openssl or units.UNKNOWN,
        **environment.packages,
        **{f"compiled into {name}": text for name, text in environment.compiled.items()},
    }


def environment_lines(run: Run) -> list[str]:
    """Return a line for each environment: its name, Python, GIL, and the versions of the packages that differ."""
    environments = run.surroundings.environments or {}
    names = dict.fromkeys(name for one in environments.values() for name in sorted(one.packages))
    differing = [name for name in names if len({one.packages.get(name) for one in environments.values()}) > 1]
    more = [f"and {len(differing) - _MOST_PACKAGES} more"] if len(differing) > _MOST_PACKAGES else []
    lines = []
    for name, one in environments.items():
        versions = [f"{package} {one.packages.get(package, units.UNKNOWN)}" for package in differing[:_MOST_PACKAGES]]
        lines.append(f"{name}: {', '.join([one.python, *_gil(run, name, one), *versions, *more])}")
    return lines


def _gil(run: Run, name: str, environment: Environment) -> list[str]:
    """Return whether a free-threaded Python had its GIL on, and in which arms, since a library may switch it on."""
    if not is_free_threaded(environment.python_build):
        return []
    trials = [trial for trial in run.trials if trial.environment == name and trial.gil is not None]
    locked, free = (list(dict.fromkeys(trial.arm for trial in trials if trial.gil is on)) for on in (True, False))
    where = f" in {', '.join(locked)}" if locked and free else ""
    return ["free-threading", *([f"GIL {'on' if locked else 'off'}{where}"] if trials else [])]
