"""What goes over the service's API. Nothing else is accepted: unknown fields are errors."""

from __future__ import annotations

import shlex
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from clientlab.runs.document import Trial

MOST_ROUNDS = 1000

WorkerName = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$", description="drawn by the worker when it started")]
StrategyName = Annotated[str, Field(min_length=1, max_length=200)]
RunName = Annotated[str, Field(min_length=1, max_length=200)]


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Asking(_Shape):
    """A worker asks for its turn; so it is known as well."""

    worker: WorkerName
    host: Annotated[str, Field(max_length=64)]
    strategies: Annotated[
        list[StrategyName], Field(min_length=1, max_length=500, description='"*" takes what nobody else does')
    ]


class Beat(_Shape):
    """A worker's trial is alive."""

    worker: WorkerName
    run: RunName
    order: Annotated[int, Field(ge=0, description="the trial's place in its run")]
    finished: Annotated[int, Field(ge=0, description="requests so far")]


class BeatAnswer(_Shape):
    """Whether the trial is still wanted."""

    go_on: bool


class Result(_Shape):
    """A trial with its figures."""

    worker: WorkerName
    run: RunName
    trial: Trial


class ResultAnswer(_Shape):
    """Whether the result is in the run; a second time it is taken as well, and changes nothing."""

    taken: bool
    says: str


class Start(_Shape):
    """A run to begin: of a bundled experiment."""

    experiment: Annotated[str, Field(min_length=1, max_length=64)]
    rounds: Annotated[int | None, Field(ge=1, le=MOST_ROUNDS, description="the experiment's own if left out")] = None
    quick: Annotated[bool, Field(description="its quick form")] = False


def command_of(experiment: str, rounds: int | None, *, quick: bool = False) -> str:
    """What runs the same from the command line."""
    more = [] if rounds is None else ["--rounds", str(rounds)]
    return shlex.join(["clientlab", "run", experiment, *(["--quick"] if quick else []), *more])


class Started(_Shape):
    """The name of a run that has begun."""

    run: str


class WorkerState(_Shape):
    """A worker that was heard of lately."""

    worker: str
    host: str
    strategies: list[str]
    state: Literal["waiting", "measuring", "away"]


class State(_Shape):
    """What the service does now. `says`: the last thing that a person should know."""

    run: str | None
    experiment: str | None
    measuring: bool
    planned: int
    done: int
    failed: int
    trial: str | None
    finished: Annotated[int, Field(description="requests of the present trial")]
    says: str
    workers: list[WorkerState]
    refusals: Annotated[list[str], Field(description="the last requests that were refused, UTC")] = []


class RunRow(_Shape):
    """A run in a line."""

    run: str
    experiment: str
    created: str
    status: str
    trials: int
    says: list[str]


class Problem(_Shape):
    """Why not: one line."""

    error: str
