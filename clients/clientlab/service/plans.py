"""Experiments as the Compose stack measures them: behind the stack's link if it has one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from clientlab.errors import LabError
from clientlab.experiments.checks import check_no_file, replacements
from clientlab.experiments.experiment import Experiment
from clientlab.experiments.file import read_experiment
from clientlab.results.plan import Plan
from clientlab.service.schemas import Wanted, command_of
from clientlab.testbeds.compose import link_of_stack
from clientlab.workload.link import Link


def served_plan(wanted: Wanted, path: Path) -> Plan:
    """The checked plan of an experiment. Raises LabError."""
    for name in wanted.strategies:
        check_no_file(name)
    file = read_experiment(path, quick=wanted.quick, rounds=wanted.rounds)
    experiment, link, changed = for_stack(file.experiment)
    for change in (_with_strategies, _divided):
        experiment, more = change(experiment, wanted)
        changed = [*changed, *more]
    named = bool(wanted.strategies)
    return replace(file, experiment=experiment).checked_plan(
        named=named,
        command=command_of(wanted, link),
        changed=changed,
        replaced={} if named else replacements(experiment),
    )


def offered_plan(path: Path) -> Plan:
    """The plan of an experiment in full, of arms that the stack could have. No strategy is loaded. Raises LabError."""
    file = read_experiment(path)
    return replace(file, experiment=for_stack(file.experiment)[0]).plan()


def for_stack(experiment: Experiment) -> tuple[Experiment, Link | None, list[str]]:
    """The experiment as the stack measures it, the link that it got from the stack, and what that changed.

    Control arms behind links of their own are left out. An experiment without links gets that of the stack, if it has
    one. Raises LabError.
    """
    experiment, changed = experiment.without_linked_controls()
    link = None if experiment.has_link else link_of_stack(os.environ)
    if link is None:
        return experiment, None, changed
    return experiment.behind(link), link, [*changed, f"link: none → {link}"]


def _with_strategies(experiment: Experiment, wanted: Wanted) -> tuple[Experiment, list[str]]:
    """The experiment with the wanted strategies, and what that changed. Raises LabError where it names its arms."""
    if not wanted.strategies:
        return experiment, []
    if experiment.arms:
        raise LabError(f"experiment {experiment.name!r} names its arms, and not strategies; leave out -t")
    named = f"strategies: {', '.join(experiment.strategies)} → {', '.join(wanted.strategies)}"
    return experiment.changed(strategies=list(wanted.strategies)), [named]


def _divided(experiment: Experiment, wanted: Wanted) -> tuple[Experiment, list[str]]:
    """The experiment with trials of so many shards, and what that changed. Raises LabError for an axis."""
    shards = wanted.shards
    if shards is None:
        return experiment, []
    workloads, changed = {}, []
    for name, table in experiment.workloads.items():
        if "shards" in table.axes:
            raise LabError(f"shards is an axis of workload {name!r}; leave out --shards, or change it in a file")
        workloads[name] = table.model_copy(update={"first": replace(table.first, shards=shards)})
        if table.first.shards != shards:
            changed.append(f"shards: {table.first.shards} → {shards}")
    return experiment.changed(workloads=workloads), list(dict.fromkeys(changed))
