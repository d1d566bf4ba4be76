"""What the lab hands to a worker: one trial to be done."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from clientlab.results.trial import PlannedTrial
from clientlab.workload.workload import Workload


class Assignment(BaseModel):
    """A worker's turn. It answers with the finished trial of the planned one, or with the report of its shard."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str
    experiment: str
    trial: PlannedTrial
    workload: Workload
    shard: Annotated[int | None, Field(ge=0, description="the shard that is to be done, from 0; null: all")] = None
    heartbeat_seconds: Annotated[float, Field(gt=0, description="how often the lab wants to hear of the trial")]
