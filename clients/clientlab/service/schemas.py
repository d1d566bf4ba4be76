"""The schemas of the service's API. Unknown fields are errors."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from clientlab.bounded_numbers import Count
from clientlab.results.shard import ShardReport
from clientlab.results.trial import Trial
from clientlab.workload.link import LINK_PARTS, Link, part_text
from clientlab.workload.workload import MOST_SHARDS

MOST_ROUNDS = 1000


class _Schema(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AssignmentRequest(_Schema):
    """A worker polls for an assignment; so the lab knows of it. Its name is drawn when it starts."""

    worker: str
    host: str
    strategies: list[str]  # "*" takes what nobody else does


class Heartbeat(_Schema):
    """A trial, or a shard of it, goes on. `order`: the trial's place in its run; `finished`: requests so far."""

    worker: str
    run: str
    order: Count
    finished: Count


class HeartbeatAnswer(_Schema):
    """Whether the trial is still wanted."""

    wanted: bool


class MeetingRequest(_Schema):
    """A shard is ready, and waits for the others of its trial."""

    worker: str
    run: str
    order: Count


class MeetingAnswer(_Schema):
    """All shards are ready. `start`: when all of them begin, by the lab's clock (Unix seconds)."""

    start: float


class LabTime(_Schema):
    """The lab's clock, in Unix seconds."""

    seconds: float


class AssignmentResult(_Schema):
    """A trial with its figures; of a divided one, the report of a shard, or the trial that failed because of it."""

    worker: str
    run: str
    trial: Trial | None = None
    shard: ShardReport | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.trial is None) == (self.shard is None):
            raise ValueError("a result has either `trial` or `shard`")
        return self

    @property
    def identity(self) -> tuple[str, int]:
        """The run, and the trial's place in it."""
        planned = self.trial if self.shard is None else self.shard.planned
        if planned is None:
            raise AssertionError("a result has a trial or a shard")
        return self.run, planned.order


class Wanted(_Schema):
    """A run to begin: of an experiment, with what is to replace the experiment's own values."""

    experiment: str
    strategies: list[str] = []
    rounds: Annotated[int | None, Field(ge=1, le=MOST_ROUNDS)] = None
    quick: bool = False
    shards: Annotated[int | None, Field(ge=1, le=MOST_SHARDS)] = None


def command_of(wanted: Wanted, link: Link | None = None) -> str:
    """What runs the same from the command line. `link`: of all arms."""
    more = [word for name in wanted.strategies for word in ("-t", name)]
    more += [] if wanted.rounds is None else ["--rounds", str(wanted.rounds)]
    more += [] if wanted.shards is None else ["--shards", str(wanted.shards)]
    if link is not None:
        parts = {part: getattr(link, part) for part in LINK_PARTS}
        more += [f"--{part}={part_text(part, value)}" for part, value in parts.items() if value is not None]
    return shlex.join(["clientlab", "run", wanted.experiment, *(["--quick"] if wanted.quick else []), *more])


class Started(_Schema):
    """The name of a run that has begun."""

    run: str


class WorkerState(_Schema):
    """A worker that was heard of lately."""

    worker: str
    host: str
    strategies: list[str]
    state: Literal["waiting", "measuring", "away"]


class State(_Schema):
    """What the service does now. `finished`: requests of the present trial; `message`: the latest line of its log."""

    run: str | None
    experiment: str | None
    measuring: bool
    planned: int
    done: int
    failed: int
    trial: str | None
    finished: int
    message: str
    workers: list[WorkerState]


class RunRow(_Schema):
    """A run in a line."""

    run: str
    experiment: str
    created: str
    status: str
    trials: int
    problem: str | None = None
