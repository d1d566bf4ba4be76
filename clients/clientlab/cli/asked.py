"""The experiment that the words of `clientlab run` ask for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from clientlab.analysis.precision import FEWEST_ROUNDS
from clientlab.cli.left_out import faults_of, tell
from clientlab.cli.words import body_of, headers_of
from clientlab.errors import LabError
from clientlab.homes.elsewhere import Elsewhere
from clientlab.runs.expansion import BadExperiment
from clientlab.runs.experiment import Experiment, with_available
from clientlab.runs.experiment_check import TLS_ROUTES, check_experiment
from clientlab.runs.experiment_file import bundled, located, read_experiment
from clientlab.runs.rounds import DEFAULT_TIME_BUDGET
from clientlab.workload import Workload

_QUESTION = "Which of these strategies is fastest here?"


def asked(name: str | None, elsewhere: Elsewhere | None, words: dict[str, Any]) -> Experiment:
    """The experiment that the words ask for, checked. Raises LabError."""
    given = {key: word for key, word in words.items() if word is not None and word is not False and word != ()}
    path = _path_of(name) if name else None
    base = with_available(read_experiment(path, quick="quick" in given) if path else _unnamed(given))
    experiment = base.model_copy(update=_changes(base, elsewhere, given))
    if path:
        experiment = experiment.model_copy(update={"changed": changed(base, experiment)})
    # What a file's claims or baseline may name can't be left out.
    free = "strategies" in given or not (experiment.claims or experiment.baseline)
    faults = faults_of(experiment.strategies) if free else {}
    experiment = experiment.without({name: ": ".join(str(fault).split("\n")) for name, fault in faults.items()})
    try:
        check_experiment(experiment, _secure(experiment, elsewhere))
    except BadExperiment as error:
        # Words that were given here are not in the file.
        raise located(path, error) if path and experiment == base else error from None
    tell(faults.values())
    return experiment


def named(name: str, *, quick: bool = False) -> Experiment:
    """The experiment of a bundled name or of a file, or its quick form. Raises LabError."""
    return read_experiment(_path_of(name), quick=quick)


def _path_of(name: str) -> Path:
    path = bundled().get(name, Path(name))
    if not path.is_file():
        raise LabError(f"experiment {name!r}: neither a bundled one ({', '.join(bundled())}) nor a file")
    return path


def _secure(experiment: Experiment, elsewhere: Elsewhere | None) -> Collection[str]:
    if elsewhere is None:
        return TLS_ROUTES
    return experiment.routes if elsewhere.secure else ()


def _changes(base: Experiment, elsewhere: Elsewhere | None, given: dict[str, Any]) -> dict[str, Any]:
    """What the words put in place of the experiment's own."""
    changes: dict[str, Any] = {key: list(given[key]) for key in ("strategies", "upstreams", "routes") if key in given}
    changes |= {key: given[key] for key in ("rounds", "seed") if key in given}
    workload_changes = _workload_changes(given)
    if elsewhere is not None:
        changes |= {"upstreams": [elsewhere.name], "routes": ["direct"]}
        workload_changes["path"] = elsewhere.path
        delayed = next((key for key, workload in base.workloads.items() if workload.delay is not None), None)
        if delayed is not None:
            raise LabError(
                f"--url with experiment {base.name!r}: workload {delayed!r} asks for a delay, which only the lab's own "
                "upstreams know; name its strategies with -t"
            )
    _check_changes(base, changes, workload_changes)
    changes["workloads"] = {key: replace(workload, **workload_changes) for key, workload in base.workloads.items()}
    if changes.get("rounds", 1) < 1:
        raise LabError(f"--rounds {changes['rounds']}: trials of each strategy; write 1 or more")
    return changes | _precision(changes.get("rounds", base.rounds), given)


def changed(base: Experiment, experiment: Experiment) -> list[str]:
    """What is measured otherwise than the base says. Rounds and seed are no such change: the same is measured."""
    found = [
        f"{key}: {', '.join(was)} → {', '.join(now)}"
        for key in ("strategies", "upstreams", "routes")
        if (was := getattr(base, key)) != (now := getattr(experiment, key))
    ]
    for name, before in base.workloads.items():
        after = experiment.workloads[name]
        found += [
            f"{key}: {'none' if was is None else was} → {'none' if now is None else now}"
            for key, was in asdict(before).items()
            if key != "seed" and was != (now := getattr(after, key))
        ]
    return list(dict.fromkeys(found))


def _check_changes(base: Experiment, changes: dict[str, Any], workload_changes: dict[str, Any]) -> None:
    """Raises LabError for a word that says otherwise than what the experiment is about: an axis, or an arm's own."""
    for name, axes in base.axes.items():
        if swept := next((key for key in workload_changes if key in axes), None):
            raise LabError(f"--{swept.replace('_', '-')}: {swept} is an axis of workload {name!r}; change it in a file")
    if "strategies" in changes and base.named_arms:
        raise LabError(f"-t with experiment {base.name!r}: it names its arms; leave out -t, or change it in a file")
    for name, arm in base.named_arms.items():
        own = {"upstreams": arm.upstream, "routes": arm.route, "concurrency": arm.concurrency}
        if said := next((key for key in own if own[key] and key in {**changes, **workload_changes}), None):
            raise LabError(f"--{said.removesuffix('s')}: arm {name!r} has its own; change it in a file")


def _precision(rounds: int, given: dict[str, Any]) -> dict[str, Any]:
    """Fields of a run whose rounds end with a precision: it has more of them at the least."""
    precision, budget = given.get("precision"), given.get("time_budget")
    if precision is None:
        if budget is not None:
            raise LabError("--time-budget without --until-precision: the rounds are planned; set them with --rounds")
        return {}
    return {
        "precision": precision,
        "time_budget": DEFAULT_TIME_BUDGET if budget is None else budget,
        "rounds": max(FEWEST_ROUNDS, rounds),
    }


def _unnamed(given: dict[str, Any]) -> Experiment:
    if "quick" in given:
        raise LabError("--quick is of an experiment; name one, or ask for less with -n and --delay")
    if "strategies" not in given:
        raise LabError("nothing to measure: name an experiment ('clientlab run demo') or strategies with -t")
    workloads = {"workload": Workload()}
    return Experiment(name="run", question=_QUESTION, strategies=list(given["strategies"]), workloads=workloads)


_WORKLOAD_WORDS = (
    "requests", "duration", "concurrency", "warmup", "connections", "seed", "path", "method",
    "payload_size", "upload_size", "upload", "read", "chunk_size", "elapsed", "encode", "parse", "delay", "timeout",
)  # fmt: skip


def _workload_changes(given: dict[str, Any]) -> dict[str, Any]:
    changes = {word: given[word] for word in _WORKLOAD_WORDS if word in given}
    if "duration" in given and "requests" not in given:
        changes["requests"] = None
    elif "requests" in given and "duration" not in given:
        changes["duration"] = None
    if "method" in given:
        changes["method"] = given["method"].upper()
    if "body" in given:
        changes["body"] = body_of(given["body"])
    if "headers" in given:
        changes["headers"] = headers_of(given["headers"])
    return changes
