"""What must hold after an incident. Each check returns sentences that say what does not."""

from __future__ import annotations

import re
from collections import Counter

import psutil

from benchmarks.chaos.incidents import ROUNDS, Incident
from benchmarks.chaos.place import Place, awaited, is_alive
from clientlab.results.document import Run

_GONE_WITHIN = 5.0
_ORPHANS_GONE_WITHIN = 3.0
_MAY_FAIL = {"reset", "protocol", "connect"}
"""Kinds of error of requests whose server's worker was killed."""

_FOLDER_FILES = {".measuring", ".page-key"}
_RUN_FILES = {"run.json", ".held", "logs", "served"}


def kept(before: Run | None, after: Run | None) -> list[str]:
    """No trial that was saved when the strike came is lost or changed."""
    if before is None:
        return []
    found = [] if after is None else after.trials
    lost = [trial.order for trial in before.trials if trial not in found]
    return [f"lost or changed: trials {lost}"] if lost else []


def caused(incident: Incident, run: Run, requests: int) -> list[str]:
    """At most one trial is failed or lost, by the right cause, with the requests that had finished of so many."""
    strike = incident.strike
    ended = [trial for trial in run.trials if trial.status != "done"]
    broken = [
        f"trial {trial.order + 1} is {trial.status}: {trial.reason}"
        for trial in ended
        if not strike.reason or not re.search(strike.reason, trial.reason or "")
    ]
    if len(ended) > 1:
        broken.append(f"{len(ended)} trials are failed or lost")
    if strike.reason and strike.certain and incident.moment.event == "share":
        broken += [] if ended else ["the trial that was struck is done"]
        least = 0 if strike.in_lab else int(incident.moment.share * requests)  # a worker's log goes with its job
        broken += [f"{one.requests} of {least} finished requests are kept" for one in ended if one.requests < least]
    return broken


def orphaned(children: list[psutil.Process]) -> list[str]:
    """No process outlives the one that had started it and was killed."""

    def alive() -> list[psutil.Process]:
        return [one for one in children if is_alive(one)]

    if awaited(lambda: not alive(), _ORPHANS_GONE_WITHIN):
        return []
    return [f"{len(alive())} of {len(children)} processes live on, {_ORPHANS_GONE_WITHIN:g} s after their parent"]


def whole(run: Run, requests: int, *, errors: bool) -> list[str]:
    """Each round is done once, with all its requests. `errors`: some may have failed."""
    done = [trial for trial in run.trials if trial.status == "done"]
    rounds = Counter(trial.round for trial in done)
    broken = []
    if run.status != "done" or rounds != dict.fromkeys(range(1, ROUNDS + 1), 1):
        broken.append(f"the run is {run.status}, with rounds {sorted(rounds.elements())}")
    broken += [f"trial {one.order + 1} has {one.requests} requests" for one in done if one.requests != requests]
    broken += [
        f"trial {one.order + 1} has errors {one.errors}"
        for one in done
        if one.errors and not (errors and set(one.errors) <= _MAY_FAIL)
    ]
    broken += [
        f"trial {one.order + 1} has {one.connections_opened} connections for {requests} requests"
        for one in done
        if one.connections_opened is None or one.connections_opened > sum(one.errors.values()) + 8
    ]
    return broken


def left(place: Place, run: Run | None) -> list[str]:
    """No process, temporary file, stale folder or stale state is there."""
    broken = []
    if not awaited(lambda: not place.processes(), _GONE_WITHIN):
        names = [" ".join(one.cmdline())[:80] for one in place.processes()]
        broken.append(f"{len(names)} processes are left: {names[0]}")
    if files := sorted(path.name for path in place.temporary.iterdir()):
        broken.append(f"temporary files are left: {', '.join(files)}")
    kept = _FOLDER_FILES | (set() if run is None else {run.run})
    if folders := {path.name for path in place.results.folder.iterdir()} - kept:
        broken.append(f"left in the results folder: {', '.join(sorted(folders))}")
    if run is not None:
        of_trials = {f"trial-{trial.order:04d}" for trial in run.trials if trial.status != "done"}
        names_in_run = {path.name for path in (place.results.folder / run.run).iterdir()}
        if stale := names_in_run - _RUN_FILES - of_trials:
            broken.append(f"left in the run's folder: {', '.join(sorted(stale))}")
    return broken
