"""Prometheus labels of an arm: the same for live trials and for finished runs."""

from __future__ import annotations

import re

from clientlab.results.plan import Arm
from clientlab.results.trial import PlannedTrial

ARM = ("run", "experiment", "arm", "legend", "strategy", "workload", "upstream", "route", "link")
"""Names of the labels, in the order of `of_arm`'s values."""


def of_arm(run: str, experiment: str, name: str, its: Arm | PlannedTrial) -> list[str]:
    """The values of the labels `ARM` for the arm of that name; `its` fields are those of the run file.

    Without a link, the label `link` is empty, which Prometheus takes for no label: older series have it so, too.
    """
    link = "" if its.link is None else str(its.link)
    place = its.strategy, its.workload, its.upstream, its.route, link
    return [run, experiment, name, legend(name, its.strategy), *place]


def legend(arm: str, strategy: str) -> str:
    """The legend of an arm: its name, followed by its strategy unless the name begins with the strategy.

    So each strategy can have one colour, whatever an experiment calls its arms.
    """
    bare = strategy.partition("?")[0]
    if re.fullmatch(rf"{re.escape(bare)}(\?.*)?( \(.*\))?(\[.*\])?( in [\w.-]+)?", arm):
        return arm
    return f"{arm} · {bare}"
