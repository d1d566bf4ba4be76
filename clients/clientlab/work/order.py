"""What the lab hands to a worker: one trial to be done."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from clientlab.runs.document import Trial
from clientlab.workload import Workload


class Turn(BaseModel):
    """A worker's turn. The trial is as planned; its result is the same trial with figures."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str
    experiment: str
    trial: Trial
    workload: Workload
    beat_seconds: Annotated[float, Field(gt=0, description="how often the lab wants to hear of the trial")]
