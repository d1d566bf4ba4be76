"""The run document: what one execution of an experiment measured, and where.

It is the only thing that `report`, `compare` and `claims` read.

Format history
    1   first version
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from clientlab.analysis.verdict import Bound
from clientlab.workload import Workload

FORMAT = 1
"""The format of run files written here; `Run.format` repeats it as the one value that is valid."""

Seconds = Annotated[float, Field(description="seconds")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Quantiles(_Part):
    """Seconds over the successful requests of a trial."""

    mean: Seconds
    p50: Seconds
    p90: Seconds
    p95: Seconds
    p99: Seconds
    p999: Seconds
    max: Seconds


class Histogram(_Part):
    """Latencies as an HDR histogram (V2, compressed, base64), three significant digits."""

    unit_seconds: float = 1e-9
    encoded: str


class Slice(_Part):
    """A part of the trial's wall time: requests that ended in it."""

    at: Annotated[float, Field(description="seconds from the trial's beginning")]
    requests: int
    errors: int
    p50: float | None = None
    p99: float | None = None


class ServerUse(_Part):
    """What an upstream or the proxy spent and counted during a trial."""

    cpu_seconds: Seconds
    requests: int | None = None
    connections: Annotated[int | None, Field(description="accepted with at least one request")] = None


class Trial(_Part):
    """One strategy doing one workload once, in a fresh process. The warm-up is left out of every figure."""

    strategy: str
    upstream: str
    route: str
    workload: str
    round: int
    order: Annotated[int, Field(description="place in the whole run, from 0")]
    status: Literal["done", "failed"]
    reason: Annotated[str | None, Field(description="of a failed trial")] = None
    started: Annotated[str, Field(description="UTC, ISO 8601")]
    concurrency: int
    wall_seconds: Seconds | None = None
    requests: Annotated[int, Field(description="finished, errors included")] = 0
    errors: Annotated[dict[str, int], Field(description="kind to count")] = {}
    error_examples: dict[str, str] = {}
    requests_per_second: Annotated[float | None, Field(description="successful ones")] = None
    connections_opened: int | None = None
    cpu_seconds: Annotated[float | None, Field(description="the process and all its children")] = None
    peak_rss_bytes: Annotated[
        int | None, Field(description="sum of each process's peak; shared pages count in each")
    ] = None
    latency_seconds: Quantiles | None = None
    overhead_seconds: Annotated[
        Quantiles | None, Field(description="latency minus the delay asked of the upstream")
    ] = None
    bytes_received: int = 0
    histogram: Histogram | None = None
    over_time: list[Slice] = []
    upstream_use: ServerUse | None = None
    proxy_use: ServerUse | None = None
    busy: Annotated[dict[str, float], Field(description="share of its time that each part was busy")] = {}
    verdict: Bound | None = None


class Arm(_Part):
    """What is compared: a strategy on one way to one upstream, doing one workload."""

    strategy: str
    upstream: str
    route: str
    workload: str


class Settings(_Part):
    """The experiment as it was carried out."""

    name: str
    question: str
    rounds: int
    seed: int
    arms: list[Arm]
    workloads: dict[str, Workload]
    command: Annotated[str, Field(description="runs it again, to the letter")]


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

    format: Literal[1] = 1
    run: Annotated[str, Field(description="the run's name, unique")]
    clientlab: Annotated[str, Field(description="version")]
    created: Annotated[str, Field(description="UTC, ISO 8601")]
    status: Literal["running", "done", "incomplete"]
    experiment: Settings
    surroundings: Surroundings
    cautions: list[Caution] = []
    trials: list[Trial] = []


def schema() -> dict[str, Any]:
    """The JSON Schema of run files, as docs/run.schema.json has it."""
    found = Run.model_json_schema(mode="serialization")
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return dialect | found | {"required": ["format", *found["required"]]}
