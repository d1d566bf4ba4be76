"""How the surroundings of two runs differ: machine, Python, versions of libraries and programs.

No difference forbids a comparison: a comparison of two surroundings may be the very question. Reports list them all,
`clientlab_run_info` has a hash that is equal where all are but `load_average`, `host`, `limits`, `lab_commit` and
`lab_tree`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clientlab.results.document import Run

_MACHINE = (
    "host", "system", "kernel", "architecture", "cpu_model", "cpu_count", "cpu_usable", "memory_bytes",
    "memory_limit_bytes", "open_files_limit", "clock", "python",
)  # fmt: skip
_MAY_BE_UNKNOWN = ("python_build", "openssl", "cpu_governor", "smt", "virtualization", "lab_commit")
"""Fields that not every system shows: there they are None."""
_LIMITS = ("ephemeral_ports", "time_wait_reuse", "listen_backlog")
"""Limits of the system that are compared where both runs know them."""
_SAME_MEMORY = 0.01
"""Machines of one kind differ by some pages."""


@dataclass(frozen=True)
class Difference:
    """A part of the surroundings that differs; None where one run has no such part."""

    part: str
    before: str | None
    after: str | None


def differences(base: Run, other: Run) -> list[Difference]:
    """Every part that differs. What only one of the runs knows is listed by name, because it may or may not differ."""
    before, after = _parts(base), _parts(other)
    here, there = list(_unknown(base, other)), list(_unknown(other, base))
    unlisted = {*here, *there}
    found = [
        Difference(part, before.get(part), after.get(part))
        for part in dict.fromkeys((*before, *after))
        if before.get(part) != after.get(part) and part not in unlisted and not _as_much_memory(part, base, other)
    ]
    found += _limits(base, other)
    found += [Difference(", ".join(here), "unknown", "known")] if here else []
    return [*found, Difference(", ".join(there), "known", "unknown")] if there else found


def _parts(run: Run) -> dict[str, str]:
    """Name → value of all that the run knows."""
    where = run.surroundings
    parts = {_name(field): str(getattr(where, field)) for field in _MACHINE}
    parts |= {_name(field): str(value) for field in _MAY_BE_UNKNOWN if (value := getattr(where, field)) is not None}
    compiled = {f"compiled into {name}": text for name, text in where.compiled.items()}
    parts |= {"clientlab": run.clientlab, "placement": str(where.placement or "not pinned")}
    for name, environment in (where.environments or {}).items():
        parts |= {f"python in {name}": environment.python, f"python build in {name}": environment.python_build}
        parts |= {f"{package} in {name}": version for package, version in environment.packages.items()}
        parts |= {f"compiled into {package} in {name}": text for package, text in environment.compiled.items()}
    return parts | where.dependencies | where.libraries | compiled | where.programs


def _limits(base: Run, other: Run) -> Iterator[Difference]:
    """The limits of the system that differ, of those that both runs know."""
    for field in _LIMITS:
        before, after = (getattr(run.surroundings.limits, field, None) for run in (base, other))
        if before != after and None not in (before, after):
            yield Difference(_name(field), str(before), str(after))


def _unknown(this: Run, other: Run) -> Iterator[str]:
    """The parts that this run does not know, and the other does."""
    for field in _MAY_BE_UNKNOWN:
        if getattr(this.surroundings, field) is None and getattr(other.surroundings, field) is not None:
            yield _name(field)


def _name(field: str) -> str:
    return field.replace("_", " ")


def _as_much_memory(part: str, base: Run, other: Run) -> bool:
    one, two = base.surroundings.memory_bytes, other.surroundings.memory_bytes
    return part == "memory bytes" and abs(one - two) <= _SAME_MEMORY * one
