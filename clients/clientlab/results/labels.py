"""Prometheus labels of an arm: the same for live trials and for finished runs."""

from __future__ import annotations

import re

from clientlab.results.plan import Arm
from clientlab.results.trial import PlannedTrial

ARM = ("run", "experiment", "arm", "legend", "strategy", "workload", "upstream", "route", "link")
"""Names of the labels, in the order of `of_arm`'s values."""


def of_arm(run: str, experiment: str, name: str, its: Arm | PlannedTrial) -> list[str]:
    """Return the values of the labels `ARM` for the arm of that name. Without a link, its label is empty."""
    place = its.strategy, its.workload, its.upstream, its.route, "" if its.link is None else str(its.link)
    return [run, experiment, name, legend(name, its.strategy), *place]


def legend(arm: str, strategy: str) -> str:
    """Return the legend of an arm: its name, followed by its strategy unless the name begins with the strategy.

    So each strategy can have one colour, whatever an experiment calls its arms.
    """
    bare = strategy.partition("?")[0]
    if re.fullmatch(rf"{re.escape(bare)}(\?.*)?( \(.*\))?(\[.*\])?( in [\w.-]+)?", arm):
        return arm
    return f"{arm} · {bare}"
