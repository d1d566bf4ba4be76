"""SIGKILL and SIGSTOP at random moments of a run: nothing that was finished is lost, and nothing is left behind.

A plan, drawn by a seed, lists the processes, signals and moments. Each incident is a run of its own, as users
start it: `clientlab run`, or `clientlab serve` with `clientlab work`. Linux only.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.chaos.incidents import Incident, incidents
from benchmarks.chaos.lab_scene import LabScene
from benchmarks.chaos.place import Missed
from benchmarks.chaos.run_scene import RunScene
from benchmarks.chaos.scene import IncidentReport
from benchmarks.figures import BenchmarkRow

_ATTEMPTS = 3
"""The victim may have ended just before it is struck. Then the incident is played again."""


def rows(seed: int, count: int) -> Iterator[BenchmarkRow]:
    """A row for each incident, and one for all. The value is 1 if everything held."""
    held = 0
    for incident in incidents(seed, count):
        report = played(incident)
        met = not report.broken
        held += met
        how = "; ".join(report.broken) or report.summary
        target = "nothing lost, the cause right, resumed, nothing left"
        yield BenchmarkRow(f"{incident}: {how}", met, met, met, f"attempt {report.attempt}", target, met, "held")
    share = held / count
    yield BenchmarkRow(f"incidents that held, of {count}", share, share, share, f"seed {seed}", "1", held == count, "")


def played(incident: Incident) -> IncidentReport:
    """What became of an incident. An incident whose victim was never there is broken."""
    for attempt in range(1, _ATTEMPTS + 1):
        with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
            scene = LabScene(incident, Path(folder)) if incident.strike.in_lab else RunScene(incident, Path(folder))
            try:
                with scene:
                    return scene.play(attempt)
            except Missed as reason:
                missed = str(reason)
    return IncidentReport([f"{_ATTEMPTS} times, {missed}"], "", _ATTEMPTS)
