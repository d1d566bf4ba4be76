"""The trial that workers have reported, checked in the run's thread: a thousand reports take a second or two."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from clientlab.results.part import first_problem
from clientlab.results.shard import ShardReport
from clientlab.results.trial import PlannedTrial, Trial, utc_now
from clientlab.running.deadline import deadline_of
from clientlab.running.merged_shards import merged_trial
from clientlab.running.trial_checks import contradiction_of
from clientlab.running.trial_result import Begun
from clientlab.workload.workload import Workload


def checked_trial(planned: PlannedTrial, workload: Workload, trial: Trial, now: float) -> Trial:
    """The trial of one worker; a failed one where it contradicts itself. `now`: Unix seconds, by the lab's clock."""
    why = contradiction_of(trial, workload, now)
    return trial if why is None else Trial.of(planned, status="failed", reason=why, started=utc_now())


def reported_trial(planned: PlannedTrial, workload: Workload, reports: Sequence[ShardReport]) -> Trial:
    """The trial; a failed one where the reports give an impossible figure."""
    started = min(report.started for report in reports)
    begun = Begun(planned, workload, started, deadline_of(workload, planned.concurrency, planned.link))
    try:
        return merged_trial(begun, reports)
    except ValidationError as error:
        return begun.ended("failed", f"impossible figure: {first_problem(error)}")
