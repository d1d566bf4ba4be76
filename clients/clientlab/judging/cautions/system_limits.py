"""Cautions about limits of the system that the arms of a run may have reached."""

from __future__ import annotations

from collections.abc import Iterator

from clientlab import strategies
from clientlab.judging.shortages import shortages
from clientlab.results.document import Caution, Run


def system_limits(run: Run) -> Iterator[Caution]:
    """What the plan needs and the system did not have, by the limits in the run file.

    A strategy of a user's file is left out: its file is code, which a report does not load.
    """
    plan, limits = run.experiment, run.surroundings.limits
    if limits is None:
        return
    arms = [arm for arm in plan.arms if not strategies.is_of_file(arm.strategy)]
    for one in shortages(plan.model_copy(update={"arms": arms}), limits, run.surroundings.programs.keys()):
        yield Caution(kind=one.kind, arms=one.arms, text=one.text, advice=one.advice)
