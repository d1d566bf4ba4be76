"""The lab service, which notes when a trial is given and how long its reports take to be merged.

``python -m benchmarks.timed_lab NOTES WORDS…`` is ``clientlab WORDS…`` that appends lines of JSON to the file NOTES.
Times are of the machine's monotonic clock, which all its processes share.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clientlab.__main__ import main
from clientlab.results.shard import ShardReport
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.service import given_trial, run_manager
from clientlab.service.dispatcher import Dispatcher
from clientlab.service.given_trial import GivenTrial, Reported, ShardSlot
from clientlab.worker.assignment import Assignment
from clientlab.workload.workload import Workload


def note_into(path: Path) -> None:
    """Note these moments in a file from now on."""
    give, assignment, merge = Dispatcher.give, GivenTrial.assignment, given_trial.reported_trial

    notes = path.open("a", buffering=1)

    def note(**line: object) -> None:
        notes.write(json.dumps(line) + "\n")

    async def noted_give(
        self: Dispatcher, run: str, experiment: str, planned: PlannedTrial, *more: Any, **named: Any
    ) -> Reported:
        note(event="given", order=planned.order, at=time.monotonic())
        return await give(self, run, experiment, planned, *more, **named)

    def noted_assignment(self: GivenTrial, slot: ShardSlot) -> Assignment:
        note(event="turn", order=self.planned.order, shard=slot.number, at=time.monotonic())
        return assignment(self, slot)

    def noted_merge(planned: PlannedTrial, workload: Workload, reports: Sequence[ShardReport]) -> Trial:
        began = time.monotonic()
        trial = merge(planned, workload, reports)
        note(event="merged", order=planned.order, reports=len(reports), seconds=time.monotonic() - began)
        return trial

    Dispatcher.give = noted_give  # type: ignore[method-assign]
    GivenTrial.assignment = noted_assignment  # type: ignore[method-assign]
    run_manager.__dict__["reported_trial"] = noted_merge


if __name__ == "__main__":
    note_into(Path(sys.argv[1]))
    sys.argv = ["clientlab", *sys.argv[2:]]
    main()
