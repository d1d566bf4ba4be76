"""The plans of the service's runs: experiments as their files have them, behind the stack's link if it has one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from clientlab.experiments.file import ExperimentFile, read_experiment
from clientlab.results.plan import Plan
from clientlab.service.schemas import command_of
from clientlab.testbeds.compose import link_of_stack


def served_plan(name: str, path: Path, rounds: int | None, *, quick: bool) -> Plan:
    """The checked plan of an experiment. An experiment without links gets that of the stack. Raises LabError."""
    file, changed = _for_stack(read_experiment(path, quick=quick, rounds=rounds))
    link = None if file.experiment.has_link else link_of_stack(os.environ)
    changed += [] if link is None else [f"link: none → {link}"]
    file = file if link is None else file.behind(link)
    return file.checked_plan(command=command_of(name, rounds, quick=quick, link=link), changed=changed)


def offered_plan(path: Path) -> Plan:
    """The plan of an experiment in full, of arms that the stack could have. No strategy is loaded. Raises LabError."""
    return _for_stack(read_experiment(path))[0].plan()


def _for_stack(file: ExperimentFile) -> tuple[ExperimentFile, list[str]]:
    """The file without control arms behind links of their own, and what that changed."""
    experiment, left_out = file.experiment.without_linked_controls()
    return replace(file, experiment=experiment), left_out
