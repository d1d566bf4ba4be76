"""Reads the runs of a history: those of folders, and run files. One that can't be read hides no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from clientlab.errors import FieldError, LabError
from clientlab.judging.history_lines import PastRun, figures_with, is_over
from clientlab.results.figure_definition import Figure
from clientlab.results.store import RUN_FILE, Store, no_collection, read_run


@dataclass(frozen=True)
class PastRuns:
    """The runs of one experiment, in no order. `left_out`: a line for each file or group of runs that is not here."""

    experiment: str
    runs: list[PastRun]
    left_out: list[str]


def read_past_runs(
    store: Store, names: Sequence[str], more: Iterable[Figure] = (), experiment: str | None = None
) -> PastRuns:
    """The runs of these folders and run files; without any, of the results folder.

    `experiment`: the one whose runs are wanted; None: that of the newest run. `more`: figures beside those that are
    always followed. Raises LabError if there is no run.
    """
    left_out: list[str] = []
    by_name = {name: _paths(store, name) for name in names or [str(store.folder)]}
    runs = _read([path for paths in by_name.values() for path in paths], more, left_out)
    if not runs:
        raise LabError(f"no finished run in {', '.join(by_name)}{'; ' if left_out else ''}{'; '.join(left_out[:1])}")
    wanted = experiment or max(runs.values(), key=lambda one: one.run.created).run.experiment.name
    left_out += _others(runs.values(), wanted)
    left_out += _without(by_name, runs, wanted)
    chosen = {(one.run.run, one.run.created): one for one in runs.values() if one.run.experiment.name == wanted}
    return PastRuns(wanted, list(chosen.values()), left_out)


def _read(paths: Iterable[Path], more: Iterable[Figure], left_out: list[str]) -> dict[Path, PastRun]:
    """The finished runs by their files. A line is added to `left_out` for each other file."""
    figures = figures_with(more)
    runs: dict[Path, PastRun] = {}
    with no_collection():
        for path in dict.fromkeys(paths):
            try:
                run = read_run(path, courses=False)
            except LabError as error:
                left_out.append(str(error))
                continue
            if is_over(run):
                runs[path] = PastRun.of(run, figures)
            else:
                left_out.append(
                    f"{path}: the run is not finished; 'clientlab run --resume {run.run}' measures the rest"
                )
    return runs


def _paths(store: Store, name: str) -> list[Path]:
    """The run files of a folder, or of a run's name or path. Raises LabError."""
    folder = Path(name)
    if folder.is_dir() and not (folder / RUN_FILE).is_file():
        if found := [folder / run / RUN_FILE for run in Store(folder).names()]:
            return found
        raise LabError(f"{name}: there is no run in this folder; name a folder of results, or run files")
    return [store.find(name)]


def _others(runs: Iterable[PastRun], wanted: str) -> list[str]:
    """A line about the runs of other experiments. Raises LabError if there is no run of the wanted one."""
    counts = Counter(one.run.experiment.name for one in runs)
    others = [f"{name} ({count})" for name, count in counts.most_common() if name != wanted]
    if wanted not in counts:
        raise FieldError(["experiment"], f"no run of this experiment; there are {', '.join(others)}", value=wanted)
    if not others:
        return []
    count = sum(counts.values()) - counts[wanted]
    runs_are = "1 run is" if count == 1 else f"{count} runs are"
    return [f"{runs_are} of other experiments: {', '.join(others)}; --experiment NAME shows one of them"]


def _without(by_name: dict[str, list[Path]], runs: dict[Path, PastRun], wanted: str) -> list[str]:
    """A line for each folder or file of which no run is of the experiment."""
    return [
        f"{name} has no finished run of experiment {wanted!r}"
        for name, paths in by_name.items()
        if not any(path in runs and runs[path].run.experiment.name == wanted for path in paths)
    ]
