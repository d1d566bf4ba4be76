"""Experiments as the Compose stack measures them: behind the stack's link if it has one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from clientlab.experiments.checks import check_no_file, replacements
from clientlab.experiments.file import read_experiment
from clientlab.experiments.overrides import Overrides, changes_between, overridden
from clientlab.results.plan import Plan
from clientlab.service.schemas import Wanted, command_of
from clientlab.testbeds.compose import for_stack


def served_plan(wanted: Wanted, path: Path) -> Plan:
    """The checked plan of an experiment. Raises LabError."""
    for name in wanted.strategies:
        check_no_file(name)
    file = read_experiment(path, quick=wanted.quick)
    behind, link, changed = for_stack(file.experiment)
    divided = {} if wanted.shards is None else {"shards": wanted.shards}
    given = Overrides(strategies=tuple(wanted.strategies), rounds=wanted.rounds, workload=divided)
    experiment = overridden(behind, given)
    changed = [*changed, *changes_between(behind, experiment)]
    named = bool(wanted.strategies)
    return replace(file, experiment=experiment).checked_plan(
        named=named,
        command=command_of(wanted, link),
        changed=changed,
        replaced={} if named else replacements(experiment),
    )
