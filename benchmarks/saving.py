"""What the lab does between two trials: save the first, and find the next. Early and late in one run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from benchmarks.figures import BenchmarkRow, at_most
from benchmarks.large_run import large_run
from clientlab.results.document import Run
from clientlab.results.store import Store
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.running.execute import Progressed, execute
from clientlab.workload.workload import Workload

PLACES = (5, 50, 500)
LIMIT = 1.25
"""Of the seconds at the last place over those at the first."""
_AROUND = 4  # trials on each side of a place


def rows(rounds: int) -> Iterator[BenchmarkRow]:
    """Milliseconds between two trials at each place, the median and the range; and the last place over the first.

    `rounds`: so many runs of 520 trials of 5,000 requests each, which were drawn and not measured.
    """
    drawn = large_run("saving", seed=1)
    runs = [_pauses(drawn) for _ in range(rounds)]
    for place in PLACES:
        found = [1e3 * pauses[place] for pauses in runs]
        name = f"between trials {place} and {place + 1} of a run"
        yield BenchmarkRow(
            name, median(found), min(found), max(found), f"range of {rounds} runs", "none", met=True, unit="ms"
        )
    first, *_, last = PLACES
    yield at_most(
        f"between trials {last} and {last + 1}, over {first} and {first + 1}",
        [pauses[last] / pauses[first] for pauses in runs],
        LIMIT,
    )


def _pauses(drawn: Run) -> dict[int, float]:
    """Place → seconds from the end of its trial to the start of the next, the median of nine neighbours."""
    trials = PLACES[-1] + _AROUND
    plan = drawn.experiment.model_copy(update={"rounds": -(-(trials + 1) // len(drawn.experiment.arms))})
    run = drawn.model_copy(update={"experiment": plan, "trials": [], "status": "running"})
    figures = drawn.trials[0].model_dump(exclude=set(PlannedTrial.model_fields))
    starts: list[float] = []
    ends: list[float] = []

    def measured(planned: PlannedTrial, workload: Workload, folder: Path, progressed: Progressed) -> Trial:  # noqa: ARG001 - drawn
        starts.append(time.perf_counter())
        trial = Trial.of(planned, **figures)
        ends.append(time.perf_counter())
        return trial

    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        store.claim(run.run)
        execute(run, measured, store, _Silent())
    pauses = [start - end for end, start in zip(ends, starts[1:], strict=False)]
    return {place: median(pauses[place - 1 - _AROUND : place + _AROUND]) for place in PLACES}


class _Silent:
    """An observer that shows nothing."""

    def run_started(self, run: Run, folder: Path) -> None:
        """Nothing to show."""

    def trials_started(self, trials: Sequence[PlannedTrial], planned: int) -> None:
        """Nothing to show."""

    def progressed(self, finished: int | None) -> None:
        """Nothing to show."""

    def trial_ended(self, trial: Trial) -> None:
        """Nothing to show."""

    def round_judged(self, run: Run, rounds: int) -> None:
        """Nothing to show."""
