"""The run document: what one execution of an experiment measured, and on which machine.

`report`, `compare` and `claims` read nothing else. The history of its format is in `conversion`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from clientlab.results.plan import AxisValue, Plan, check_workloads
from clientlab.results.trial import Part, Time, Trial


class ClaimResult(Part):
    """The verdict on a claim, from the rounds of a run."""

    name: str
    text: str
    source: str | None
    kind: str
    figure: str
    control: bool
    published: str | None
    verdict: Literal["supported", "contradicted", "inconclusive"]
    ratio: Annotated[
        float | None,
        Field(
            description="b over a, of the figure or its spread; optimum: better end over the least; narrower: of ratios"
        ),
    ] = None
    interval: Annotated[tuple[float, float] | None, Field(description="95 %, from rounds")] = None
    band: tuple[float, float] | None = None
    best: Annotated[AxisValue | None, Field(description="value of the axis with the least figure")] = None
    knee: Annotated[
        AxisValue | None,
        Field(description="first value of the axis within 5 % of the least figure; None if it may be any value"),
    ] = None
    knee_between: Annotated[
        tuple[AxisValue, AxisValue] | None, Field(description="95 % interval of the knee: first and last value")
    ] = None
    rounds: int
    measured: Annotated[str, Field(description="what was found, in a sentence")]
    settles: Annotated[str | None, Field(description="what would settle an inconclusive claim")] = None
    cautions: Annotated[list[str], Field(description="kinds of the cautions about the claim's arms")] = []


class Surroundings(Part):
    """The machine and the software of a run."""

    host: str
    system: str
    kernel: str
    architecture: str
    cpu_model: str
    cpu_count: int
    cpu_usable: Annotated[float, Field(description="by affinity and by the least quota of the control groups")]
    memory_bytes: int
    memory_limit_bytes: int | None
    open_files_limit: int
    load_average: Annotated[float, Field(description="over the minute before the run")]
    python: str
    libraries: dict[str, str]
    programs: Annotated[dict[str, str], Field(description="servers and their settings")]
    clock: Annotated[str, Field(description="implementation and resolution")]
    dependencies: Annotated[
        dict[str, str] | None, Field(description="versions of what the measured libraries require; null: unknown")
    ] = None
    compiled: Annotated[
        dict[str, str] | None, Field(description="libraries compiled into the measured ones, such as libcurl")
    ] = None
    openssl: Annotated[str | None, Field(description="of Python's module ssl")] = None
    python_build: Annotated[str | None, Field(description="GIL, compiler, optimisation, PGO, LTO")] = None
    cpu_governor: Annotated[str | None, Field(description="of the cores' frequency")] = None
    smt: Annotated[bool | None, Field(description="whether two threads share a core")] = None
    virtualization: Annotated[str | None, Field(description="virtual machine, container, or none")] = None
    lab_commit: Annotated[str | None, Field(description="commit of the lab's clone, and whether it was changed")] = None


class Caution(Part):
    """A reason to doubt a number, with advice."""

    kind: str
    text: str
    advice: str
    arms: Annotated[list[str], Field(description="arms whose trials it doubts; empty: it is about the whole run")] = []


class Resumption(Part):
    """A run that had stopped went on."""

    at: Time
    trials: Annotated[int, Field(ge=0, description="those that the run had then")]
    differences: Annotated[list[str], Field(description="how the surroundings differed from those of the beginning")]


class Run(Part):
    """One execution of an experiment."""

    format: Literal[3] = 3
    run: Annotated[str, Field(description="the run's name, unique")]
    clientlab: Annotated[str, Field(description="version")]
    created: Time
    status: Annotated[
        Literal["running", "interrupted", "done", "incomplete"],
        Field(description="interrupted: its process is gone; never in a file, which then has running"),
    ]
    experiment: Plan
    surroundings: Surroundings
    rounds_ended: Annotated[
        Literal["planned", "precision", "time-budget"] | None, Field(description="what ended the rounds")
    ] = None
    resumed: Annotated[list[Resumption], Field(description="when the run went on after it had stopped")] = []
    cautions: list[Caution] = []
    claims: list[ClaimResult] = []
    trials: list[Trial] = []

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_workloads("trial of", ((trial.arm, trial.workload) for trial in self.trials), self.experiment.workloads)
        return self


def schema() -> dict[str, Any]:
    """The JSON Schema of run files; docs/run.schema.json is written from it."""
    found = Run.model_json_schema(mode="serialization")
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return dialect | found | {"required": ["format", *found["required"]]}
