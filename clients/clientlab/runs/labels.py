"""What Prometheus calls an arm: the same labels live, while its trials run, and of runs that have ended."""

from __future__ import annotations

import re

from clientlab.runs.document import Arm, Trial

ARM = ("run", "experiment", "arm", "legend", "strategy", "workload", "upstream", "route")
"""Names of the labels, in the order of `of_arm`'s values."""


def of_arm(run: str, experiment: str, name: str, its: Arm | Trial) -> list[str]:
    """The values of `ARM` for the arm of that name: `its` parts, as the run file has them."""
    return [run, experiment, name, legend(name, its.strategy), its.strategy, its.workload, its.upstream, its.route]


def legend(arm: str, strategy: str) -> str:
    """What a chart calls an arm: its name, and its strategy behind it where the name does not begin with that.

    So a colour can be the strategy's, whatever an experiment calls its arms.
    """
    bare = strategy.partition("?")[0]
    if re.fullmatch(rf"{re.escape(bare)}(\?.*)?( \(.*\))?(\[.*\])?", arm):
        return arm
    return f"{arm} · {bare}"
