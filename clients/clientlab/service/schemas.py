"""The schemas of the service's API. Unknown fields are errors."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from clientlab.bounded_numbers import Count
from clientlab.results.shard import ShardReport
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.workload.link import LINK_PARTS, Link, part_text
from clientlab.workload.workload import MOST_REQUESTS, MOST_SHARDS

MOST_ROUNDS = 1000

MOST_NAMES_SHOWN = 20
"""Strategies of a worker in the state of the lab, which is sent for all workers at once."""


def _on_one_line(text: str) -> str:
    """The text. Raises ValueError for one that a terminal or a log would obey instead of show."""
    if not text.isprintable():
        raise ValueError("it holds control characters; write printable ones only")
    return text


_OneLine = AfterValidator(_on_one_line)

WorkerName = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$", description="drawn by the worker when it started")]
StrategyName = Annotated[str, Field(min_length=1, max_length=200), _OneLine]
RunName = Annotated[str, Field(min_length=1, max_length=200), _OneLine]


class _Schema(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AssignmentRequest(_Schema):
    """A worker polls for an assignment; so the lab knows of it."""

    worker: WorkerName
    host: Annotated[str, Field(max_length=64), _OneLine]
    strategies: Annotated[
        list[StrategyName], Field(min_length=1, max_length=500, description='"*" takes what nobody else does')
    ]
    run: Annotated[RunName | None, Field(description="the worker is for this run only; null: for every run")] = None


_Order = Annotated[Count, Field(description="the trial's place in its run")]
_Shard = Annotated[int, Field(ge=0, lt=MOST_SHARDS, description="from 0")]


class Heartbeat(_Schema):
    """A trial, or a shard of it, goes on."""

    worker: WorkerName
    run: RunName
    order: _Order
    shard: Annotated[_Shard | None, Field(description="null: the trial is not divided")] = None
    finished: Annotated[int, Field(ge=0, le=MOST_REQUESTS, description="requests so far")]


class HeartbeatAnswer(_Schema):
    """Whether the trial is still wanted."""

    wanted: bool


class MeetingRequest(_Schema):
    """A shard is ready, and waits for the others of its trial."""

    worker: WorkerName
    run: RunName
    order: _Order
    shard: _Shard


class MeetingAnswer(_Schema):
    """All shards are ready."""

    start: Annotated[float, Field(description="when all of them begin, by the lab's clock (Unix seconds)")]


class LabTime(_Schema):
    """The lab's clock."""

    seconds: Annotated[float, Field(description="Unix seconds")]


class AssignmentResult(_Schema):
    """A trial with its figures; of a divided one, the report of a shard, or the trial that failed because of it."""

    worker: WorkerName
    run: RunName
    trial: Trial | None = None
    shard: ShardReport | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.trial is None) == (self.shard is None):
            raise ValueError("a result has either `trial` or `shard`")
        return self

    @property
    def of(self) -> PlannedTrial:
        """The trial that was measured; of a shard, with the shard's own concurrency."""
        found = self.trial if self.shard is None else self.shard.planned
        if found is None:
            raise AssertionError("a result has a trial or a shard")
        return found

    @property
    def identity(self) -> tuple[str, int]:
        """The run, and the trial's place in it."""
        return self.run, self.of.order


class ResultAnswer(_Schema):
    """Whether the result is in the run; a second time it is taken as well, and changes nothing."""

    taken: bool
    message: str


class Wanted(_Schema):
    """A run to begin: of an experiment, with what is to replace the experiment's own values."""

    experiment: Annotated[str, Field(min_length=1)]
    strategies: Annotated[list[StrategyName], Field(max_length=500, description="its own without any")] = []
    rounds: Annotated[int | None, Field(ge=1, le=MOST_ROUNDS, description="the experiment's own if left out")] = None
    quick: Annotated[bool, Field(description="its quick form")] = False
    shards: Annotated[
        int | None, Field(ge=1, le=MOST_SHARDS, description="workers that divide each trial; its own if left out")
    ] = None


class Start(Wanted):
    """A run to begin: of a bundled experiment."""

    experiment: Annotated[str, Field(min_length=1, max_length=64), _OneLine]


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


class ShardState(_Schema):
    """How far a shard of the present trial is."""

    index: Annotated[int, Field(description="from 0")]
    of: Annotated[int, Field(description="shards of the trial")]
    finished: Annotated[int, Field(description="requests so far")]
    phase: Annotated[
        Literal["preparing", "ready", "measuring", "done"], Field(description="ready: it waits for the other shards")
    ]


class WorkerState(_Schema):
    """A worker that was heard of lately."""

    worker: str
    host: str
    strategies: Annotated[list[str], Field(description=f"the first {MOST_NAMES_SHOWN}")]
    more_strategies: Annotated[int, Field(description="how many others it is there for")] = 0
    state: Literal["waiting", "measuring", "away"]
    shard: Annotated[ShardState | None, Field(description="null: it has none")] = None


class State(_Schema):
    """What the service does now. `message`: the latest line of its log."""

    run: str | None
    experiment: str | None
    measuring: bool
    planned: int
    done: int
    failed: int
    trial: str | None
    finished: Annotated[int, Field(description="requests of the present trial")]
    shards: Annotated[
        str | None, Field(description="of the present trial, as in '3 of 4 shards are ready'; null: it is not divided")
    ] = None
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


class Problem(_Schema):
    """Why not: one line."""

    error: str
