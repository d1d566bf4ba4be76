"""Whether two runs can be compared: what was asked must be alike; surroundings that differ are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from clientlab.runs.document import Arm, Run

_MACHINE = (
    "host", "system", "kernel", "architecture", "cpu_model", "cpu_count", "cpu_usable", "memory_bytes",
    "memory_limit_bytes", "open_files_limit", "clock", "python",
)  # fmt: skip
_SAME_MEMORY = 0.01
"""Machines of one kind differ by some pages."""


@dataclass(frozen=True)
class Difference:
    """A part of the surroundings that is not the same; None where one run has no such part."""

    part: str
    before: str | None
    after: str | None


def differences(base: Run, other: Run) -> list[Difference]:
    """How the surroundings of two runs differ: machine, Python, versions, programs."""
    before, after = _parts(base), _parts(other)
    return [
        Difference(part, before.get(part), after.get(part))
        for part in dict.fromkeys((*before, *after))
        if before.get(part) != after.get(part) and not _as_much_memory(part, base, other)
    ]


def unlike(base: Run, other: Run) -> list[str]:
    """What was not asked alike in two runs, in words; empty where they can be compared."""
    return list(_unlike(base, other))


def _unlike(base: Run, other: Run) -> Iterator[str]:
    before, after = _arms(base), _arms(other)
    for run, names in ((base, before.keys() - after.keys()), (other, after.keys() - before.keys())):
        if names:
            yield f"only {run.run} has {_names(sorted(names))}"
    for name in before.keys() & after.keys():
        for part in ("strategy", "upstream", "route"):
            one, two = getattr(before[name], part), getattr(after[name], part)
            if one != two:
                yield f"arm {name!r} has {part} {one!r} and {two!r}"
    yield from _workloads(base, other, before, after)
    yield from _concurrency(base, other)


def _workloads(base: Run, other: Run, before: dict[str, Arm], after: dict[str, Arm]) -> Iterator[str]:
    seen = set()
    for name in (arm.name for arm in base.experiment.arms if arm.name in after):
        pair = (before[name].workload, after[name].workload)
        if pair in seen:
            continue
        seen.add(pair)
        one = asdict(base.experiment.workloads[pair[0]])
        two = asdict(other.experiment.workloads[pair[1]])
        for key in one:
            if one[key] != two[key]:
                yield f"workload {pair[0]!r} has {key} {one[key]!r} and {two[key]!r}"


def _concurrency(base: Run, other: Run) -> Iterator[str]:
    after = {trial.arm: trial.concurrency for trial in other.trials}
    for name, here in {trial.arm: trial.concurrency for trial in base.trials}.items():
        if name in after and after[name] != here:
            yield f"arm {name!r} has concurrency {here} and {after[name]}"


def _arms(run: Run) -> dict[str, Arm]:
    return {arm.name: arm for arm in run.experiment.arms}


def _names(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:3]))
    return f"arm {shown}" if len(names) <= 3 else f"arm {shown} and {len(names) - 3} more"


def _parts(run: Run) -> dict[str, str]:
    where = run.surroundings
    parts = {part.replace("_", " "): str(getattr(where, part)) for part in _MACHINE}
    return parts | {"clientlab": run.clientlab} | where.libraries | where.programs


def _as_much_memory(part: str, base: Run, other: Run) -> bool:
    one, two = base.surroundings.memory_bytes, other.surroundings.memory_bytes
    return part == "memory bytes" and abs(one - two) <= _SAME_MEMORY * one
