"""The environments of a run: their Pythons, the packages in which they differ, and what difference they make."""

from __future__ import annotations

from clientlab import units
from clientlab.judging.contrasts import Contrast, contrasts, environment_pairs
from clientlab.results.document import Environment, Run
from clientlab.results.machine import is_free_threaded

_MOST = 8
"""Packages in a line of the terminal. The page has all of them."""


def lines(run: Run) -> list[str]:
    """A line for each environment: its name, its Python, its GIL, and the versions of the packages that differ."""
    found = run.surroundings.environments or {}
    differing = _differing(found)
    return [
        f"{name}: {', '.join([one.python, *_gil(run, name), *_shown(one, differing)])}" for name, one in found.items()
    ]


def sentences(run: Run) -> list[str]:
    """How many times as long each arm takes as in the first environment, with intervals that hold together."""
    return [_sentence(one) for one in contrasts(run, environment_pairs(run.experiment.arms))]


def _sentence(found: Contrast) -> str:
    known = [
        f"{units.ratio_of(ratio)} times the {label}"
        for ratio, label in ((found.time, found.figure.label), (found.cpu, "CPU time per request"))
        if ratio is not None
    ]
    if not known:
        return f"{found.arm.name} and {found.base.name}: no round has trials of both without errors."
    return f"{found.arm.name} takes {' and '.join(known)} of {found.base.name}."


def tables(run: Run) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each environment with everything that is known of it, as name and value."""
    return [(name, _pairs(one)) for name, one in (run.surroundings.environments or {}).items()]


def _pairs(environment: Environment) -> list[tuple[str, str]]:
    own = [
        ("folder", environment.folder),
        ("Python", f"{environment.python}: {environment.python_build}"),
        ("TLS of Python", environment.openssl or units.UNKNOWN),
    ]
    compiled = [(f"compiled into {name}", text) for name, text in environment.compiled.items()]
    return [*own, *environment.packages.items(), *compiled]


def _gil(run: Run, name: str) -> list[str]:
    """Of a Python that was built for free threading: in which arms a library switched the GIL on."""
    environment = (run.surroundings.environments or {})[name]
    if not is_free_threaded(environment.python_build):
        return []
    trials = [trial for trial in run.trials if trial.environment == name and trial.gil is not None]
    locked, free = (list(dict.fromkeys(trial.arm for trial in trials if trial.gil is on)) for on in (True, False))
    where = f" in {', '.join(locked)}" if locked and free else ""
    return ["free-threading", *([f"GIL {'on' if locked else 'off'}{where}"] if trials else [])]


def _differing(environments: dict[str, Environment]) -> list[str]:
    """The packages that do not have one version in all environments."""
    tables = [one.packages for one in environments.values()]
    names = dict.fromkeys(name for table in tables for name in sorted(table))
    return [name for name in names if len({table.get(name) for table in tables}) > 1]


def _shown(environment: Environment, differing: list[str]) -> list[str]:
    shown = [f"{name} {environment.packages.get(name, units.UNKNOWN)}" for name in differing[:_MOST]]
    return [*shown, f"and {len(differing) - _MOST} more"] if len(differing) > _MOST else shown
