"""The run document: what one execution of an experiment measured, and where.

It is the only thing that `report`, `compare` and `claims` read.

Format history
    1   first version
    2   arms have names, axes and controls; claims, source, what was shortened or changed; a trial names its arm
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from clientlab.analysis.verdict import Bound
from clientlab.runs import stored_histogram
from clientlab.runs.document_check import check_settings, check_trial, check_trials
from clientlab.workload import Workload

FORMAT = 2
"""The format of run files written here; `Run.format` repeats it as the one value that is valid."""

MOST = 1e12
"""Of any figure in seconds or requests a second: what is beyond was not measured, and can't be drawn."""
Seconds = Annotated[float, Field(description="seconds", ge=-MOST, le=MOST)]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
AxisValue = bool | Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | Annotated[float, Field(allow_inf_nan=False)] | str

Figure = Literal[
    "wall_seconds",
    "requests_per_second",
    "p50",
    "p99",
    "cpu_seconds",
    "peak_rss_bytes",
    "connections_opened",
    "elapsed",
]
"""What a claim may compare; `elapsed` is the library's own measure, summed over a trial."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class _Measured(_Part):
    model_config = ConfigDict(allow_inf_nan=False)


class Quantiles(_Measured):
    """Seconds over the successful requests of a trial."""

    mean: Seconds
    p50: Seconds
    p90: Seconds
    p95: Seconds
    p99: Seconds
    p999: Seconds
    max: Seconds


def _checked(encoded: str) -> str:
    stored_histogram.check(encoded)
    return encoded


class Histogram(_Measured):
    """Latencies as an HDR histogram (V2, compressed, base64), of 1 to 3.6e12 units, three significant digits."""

    unit_seconds: Annotated[float, Field(ge=1e-12, le=1)] = 1e-9
    encoded: Annotated[str, AfterValidator(_checked)]


class Slice(_Measured):
    """A part of the trial's wall time: requests that ended in it."""

    at: Annotated[Seconds, Field(description="seconds from the trial's beginning")]
    requests: Count
    errors: Count
    p50: Seconds | None = None
    p99: Seconds | None = None


class ServerUse(_Measured):
    """What an upstream or the proxy spent and counted during a trial."""

    cpu_seconds: Seconds
    requests: Count | None = None
    connections: Annotated[Count | None, Field(description="accepted with at least one request")] = None


class Trial(_Measured):
    """One strategy doing one workload once, in a fresh process. The warm-up is left out of every figure."""

    arm: Annotated[str, Field(description="name of the experiment's arm that it is a trial of")]
    strategy: str
    upstream: str
    route: str
    workload: str
    round: Count
    order: Annotated[Count, Field(description="place in the whole run, from 0")]
    status: Literal["done", "failed"]
    reason: Annotated[str | None, Field(description="of a failed trial")] = None
    started: Annotated[str, Field(description="UTC, ISO 8601")]
    concurrency: Count
    wall_seconds: Seconds | None = None
    requests: Annotated[Count, Field(description="finished, errors included")] = 0
    errors: Annotated[dict[str, Count], Field(description="kind to count")] = {}
    error_examples: dict[str, str] = {}
    requests_per_second: Annotated[
        Annotated[float, Field(ge=0, le=MOST)] | None, Field(description="successful ones")
    ] = None
    connections_opened: Count | None = None
    driver: Annotated[
        str | None, Field(description="program by whose clock wall and latencies are: quantiles between its hundredths")
    ] = None
    kept_alive: Annotated[
        Count | None, Field(description="requests whose connection was kept, as the driver tells")
    ] = None
    cpu_seconds: Annotated[Seconds | None, Field(description="the process and all its children")] = None
    idle_rss_bytes: Annotated[
        Count | None, Field(description="after the warm-up, before the measured part, of the processes there already")
    ] = None
    peak_rss_bytes: Annotated[
        Count | None, Field(description="sum of each process's peak; shared pages count in each")
    ] = None
    latency_seconds: Quantiles | None = None
    elapsed_seconds_sum: Annotated[
        Seconds | None, Field(description="the library's own measure, over successful requests")
    ] = None
    overhead_seconds: Annotated[
        Quantiles | None, Field(description="latency minus the delay asked of the upstream")
    ] = None
    bytes_received: Count = 0
    histogram: Histogram | None = None
    over_time: list[Slice] = []
    upstream_use: ServerUse | None = None
    proxy_use: ServerUse | None = None
    busy: Annotated[dict[str, float], Field(description="share of its time that each part was busy")] = {}
    verdict: Bound | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        check_trial(self)
        return self


class Arm(_Part):
    """What is compared: a strategy on one way to one upstream, doing one workload."""

    name: Annotated[str, Field(description="unique in the run")]
    label: Annotated[str | None, Field(description="its name among the arms of its group; the strategy if none")] = None
    strategy: str
    upstream: str
    route: str
    workload: Annotated[str, Field(description="key of the experiment's workloads")]
    group: Annotated[str | None, Field(description="the workload as the experiment names it, without axes")] = None
    axes: Annotated[dict[str, AxisValue], Field(description="its place on each axis of the experiment")] = {}
    sweep: Annotated[str | None, Field(description="the name that the arms of one sweep have in common")] = None
    control: Annotated[bool, Field(description="not of the source, but shows what the source did not control")] = False


class Source(_Part):
    """The publication that an experiment reproduces."""

    title: str
    authors: str
    date: str
    url: str | None = None


class AskedClaim(_Part):
    """A published statement as a check: it compares a figure of two arms, or the arms of a sweep.

    `kind`: ``less`` arm `a` has less of it than `b`; ``ratio`` b's figure over a's lies in `band` (around 1: they
    are alike); ``optimum`` the least of the sweep `arms` is at neither end; ``spread`` a's varies less over the
    rounds than b's; ``narrower`` b's figure over a's is less than d's over c's.
    """

    name: Annotated[str, Field(description="unique in the experiment")]
    text: str
    kind: Literal["less", "ratio", "optimum", "spread", "narrower"]
    figure: Annotated[Figure, Field(description="what is compared")] = "wall_seconds"
    a: str | None = None
    b: str | None = None
    c: str | None = None
    d: str | None = None
    arms: list[str] = []
    band: tuple[float, float] | None = None
    published: Annotated[str | None, Field(description="what the source printed")] = None
    control: bool = False


class Claim(_Part):
    """A claim's verdict from the rounds of a run."""

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
            description="b's over a's: figure, or its spread; optimum: better end's over the least's; narrower: of gaps"
        ),
    ] = None
    interval: Annotated[tuple[float, float] | None, Field(description="95 %, from rounds")] = None
    band: tuple[float, float] | None = None
    best: Annotated[AxisValue | None, Field(description="place of the least on the axis of a sweep")] = None
    knee: Annotated[AxisValue | None, Field(description="from there on more of the axis brings under 5 %")] = None
    rounds: int
    measured: Annotated[str, Field(description="what was found, in a sentence")]
    settles: Annotated[str | None, Field(description="what would settle an inconclusive one")] = None


class Settings(_Part):
    """The experiment as it was carried out."""

    name: str
    question: str
    rounds: Annotated[int, Field(description="the fewest, where a precision is asked for")]
    precision: Annotated[
        float | None, Field(description="rounds were added until each ratio's interval reaches no further, as a share")
    ] = None
    time_budget: Annotated[float | None, Field(description="seconds, after which no round was added")] = None
    seed: int
    arms: list[Arm]
    baseline: Annotated[str | None, Field(description="the arm that others are measured by")] = None
    workloads: dict[str, Workload]
    source: Source | None = None
    uncontrolled: Annotated[list[str], Field(description="what the source did not control")] = []
    workers: Annotated[
        dict[str, int], Field(description="plain upstream to the workers asked for, where not the lab chooses them")
    ] = {}
    shortened: Annotated[list[str], Field(description="what --quick changed")] = []
    changed: Annotated[
        list[str], Field(description="what the command line put in place of the experiment's own, but rounds and seed")
    ] = []
    claims: list[AskedClaim] = []
    replaced: Annotated[
        dict[str, str], Field(description="strategy that is not installed to the one that took its place")
    ] = {}
    left_out: Annotated[dict[str, str], Field(description="strategy that could not be loaded to why")] = {}
    command: Annotated[str, Field(description="runs it again, to the letter")]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_settings(self)
        return self


class Surroundings(_Part):
    """Where it was measured."""

    host: str
    system: str
    kernel: str
    architecture: str
    cpu_model: str
    cpu_count: int
    cpu_usable: Annotated[float, Field(description="by affinity and by the control group's quota")]
    memory_bytes: int
    memory_limit_bytes: int | None
    open_files_limit: int
    load_average: Annotated[float, Field(description="over the minute before the run")]
    python: str
    libraries: dict[str, str]
    programs: Annotated[dict[str, str], Field(description="servers and their settings")]
    clock: Annotated[str, Field(description="implementation and resolution")]


class Caution(_Part):
    """A reason not to believe a number, with advice."""

    kind: str
    text: str
    advice: str


class Run(_Part):
    """One execution of an experiment."""

    format: Literal[2] = 2
    run: Annotated[str, Field(description="the run's name, unique")]
    clientlab: Annotated[str, Field(description="version")]
    created: Annotated[str, Field(description="UTC, ISO 8601")]
    status: Literal["running", "done", "incomplete"]
    experiment: Settings
    surroundings: Surroundings
    rounds_ended: Annotated[
        Literal["planned", "precision", "time-budget"] | None, Field(description="what ended the rounds")
    ] = None
    cautions: list[Caution] = []
    claims: list[Claim] = []
    trials: list[Trial] = []

    @model_validator(mode="after")
    def _fits(self) -> Self:
        check_trials(self.experiment, self.trials)
        return self


def schema() -> dict[str, Any]:
    """The JSON Schema of run files, as docs/run.schema.json has it."""
    found = Run.model_json_schema(mode="serialization")
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return dialect | found | {"required": ["format", *found["required"]]}
