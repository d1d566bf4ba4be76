"""The plans of the service's runs: experiments as their files have them, behind the stack's link if it has one."""

from __future__ import annotations

import os
from pathlib import Path

from clientlab.experiments.file import read_experiment
from clientlab.results.plan import Plan
from clientlab.service.schemas import command_of
from clientlab.testbeds.compose import link_of_stack


def served_plan(name: str, path: Path, rounds: int | None, *, quick: bool) -> Plan:
    """The checked plan of an experiment. An experiment without links gets that of the stack. Raises LabError."""
    file = read_experiment(path, quick=quick, rounds=rounds)
    link = None if file.experiment.has_link else link_of_stack(os.environ)
    changed = [] if link is None else [f"link: none → {link}"]
    file = file if link is None else file.behind(link)
    return file.checked_plan(command=command_of(name, rounds, quick=quick, link=link), changed=changed)
