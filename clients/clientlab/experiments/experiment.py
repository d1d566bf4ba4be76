"""An experiment as its file has it: tables of workloads, arms and claims. Nothing is expanded."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, model_validator

from clientlab.results.conditions import Conditions
from clientlab.results.plan import AxisValue, EnvironmentSpec, FigureName, Source
from clientlab.results.trial import MOST_ROUNDS_OF_A_RUN, MOST_SLICES
from clientlab.workload.delays import seconds
from clientlab.workload.link import LINK_PARTS, Link, bandwidth_of, rtt_of
from clientlab.workload.seeds import MOST_SEED
from clientlab.workload.workload import Workload
from clientlab.workload.written import ParsedBy, text_of

NAME = r"^[a-z0-9][a-z0-9._-]*$"
MOST_CHARACTERS = 64
ENVIRONMENT = r"^[A-Za-z0-9][\w.-]{0,31}$"
EnvironmentName = Annotated[str, Field(pattern=ENVIRONMENT)]
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,18})?", re.ASCII)
Route = Literal["direct", "proxy", "proxy-tls"]


def _each_once(values: list[float]) -> list[float]:
    """The values of an axis. Raises ValueError without any, and for one that is there twice."""
    if not values or len(set(values)) < len(values):
        raise ValueError("an axis is a list of values, each once")
    return values


def _parsed_by(parse: Callable[[str], float]) -> BeforeValidator:
    """A validator that parses the values of a file as options are: one, or an axis of several, each once."""

    def value(given: object) -> float:
        return parse(text_of(given))

    def values(given: object) -> float | list[float]:
        return _each_once(list(map(value, given))) if isinstance(given, list) else value(given)

    return BeforeValidator(values)


_Parts = float | list[float]

RoundTrips = Annotated[_Parts, _parsed_by(rtt_of)]
"""One round-trip time in seconds, or an axis of them; in a file also ``"35ms"``."""
Bandwidths = Annotated[_Parts, _parsed_by(bandwidth_of)]
"""One bandwidth in bits per second, or an axis of them; in a file ``"20mbit"``."""


Budget = Annotated[float, ParsedBy(seconds), Field(gt=0)]
"""Seconds; in a file also ``"60s"``."""


def unquoted(value: Any) -> Any:
    """The number of an axis that the file has in quotes, so that it has its place among numbers; else the value."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        return value
    return float(value) if "." in value else int(value)


class Table(BaseModel):
    """A table of the file: immutable, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Fields = dict[str, Any]
"""Keys and values of a table that stands for others, as the file has them."""


class QuickTable(Table):
    """``[quick]``: values that replace others of the file."""

    rounds: int | None = None
    budget: float | str | None = None
    common: Fields = {}
    workloads: dict[str, Fields] = {}
    arms: dict[str, Fields] = {}


class FileTables(BaseModel):
    """The tables of a file that are no part of the experiment as they stand.

    `common` holds fields of every workload without its own value; `quick` holds the values of the quick form.
    """

    common: Fields = Field(default={})
    workloads: dict[str, Fields] = Field(default={})
    quick: QuickTable | None = None


class LinkedTable(Table):
    """A table whose arms may be behind a link. A list is an axis."""

    rtt: RoundTrips | None = None
    bandwidth: Bandwidths | None = None

    @property
    def has_link(self) -> bool:
        """Whether the table describes a link."""
        return bool(self.link_parts)

    @property
    def link_parts(self) -> dict[str, float | list[float]]:
        """The parts of the link that the table describes."""
        parts = {part: getattr(self, part) for part in LINK_PARTS}
        return {part: value for part, value in parts.items() if value is not None}


_WORKLOADS = TypeAdapter(Workload)


class WorkloadTable(LinkedTable):
    """``[workloads.NAME]``: the workload with the first value of each axis, and all values of each axis.

    `rtt`, `bandwidth`: of the link of its arms, unless they have their own. Without any, there is no link.
    """

    first: Workload
    axes: dict[str, list[AxisValue]] = {}

    def at(self, place: Mapping[str, AxisValue]) -> Workload:
        """The workload with these values of its axes, which are as the file has them. Raises ValidationError."""
        return _WORKLOADS.validate_python({**vars(self.first), **place}) if place else self.first


Setting = Annotated[AxisValue, BeforeValidator(unquoted)]


class ArmTable(LinkedTable):
    """``[arms.NAME]``: arms with every workload, upstream, route and environment that the table does not choose.

    A list as `concurrency`, `rtt` or `bandwidth`, or as a setting of the strategy, is an axis: one arm for each of
    its values.
    """

    strategy: str
    settings: dict[str, Setting | list[Setting]] = {}
    concurrency: int | list[int] | None = None
    workload: str | None = None
    upstream: str | None = None
    route: Route | None = None
    environment: str | None = None
    control: bool = False


class ClaimTable(Table):
    """``[claims.NAME]``: `a` to `d` name arms; ``SWEEP[first]`` and ``SWEEP[last]`` are the ends of a sweep.

    In `text`, ``{requests}`` stands for the number of requests of the arms, which the quick form may change.
    """

    text: str
    kind: Literal["less", "ratio", "optimum", "spread", "narrower"]
    figure: FigureName = "wall_seconds"
    a: str | None = None
    b: str | None = None
    c: str | None = None
    d: str | None = None
    sweep: str | None = None
    band: tuple[float, float] | None = None
    published: str | None = None
    control: bool = False

    @property
    def entries(self) -> set[str]:
        """The arms that it compares, by their names in the file."""
        names = (self.a, self.b, self.c, self.d, self.sweep)
        return {name.partition("[")[0].partition(" (")[0] for name in names if name is not None}

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        kinds = {"ratio": {"a", "b", "band"}, "optimum": {"sweep"}, "narrower": {"a", "b", "c", "d"}}
        needed = kinds.get(self.kind, {"a", "b"})
        given = {key for key in ("a", "b", "c", "d", "sweep", "band") if getattr(self, key) is not None}
        if needed != given:
            raise ValueError(f"a claim of kind {self.kind!r} is made of {', '.join(sorted(needed))}")
        if self.band and not 0 < self.band[0] < self.band[1]:
            raise ValueError("band: write the lower end first, and above 0")
        return self


class Experiment(Table):
    """Workloads × strategies × upstreams × routes × axes, in rounds. `planning` makes the plan of a run of it."""

    name: str = Field(pattern=NAME, max_length=MOST_CHARACTERS)
    question: str
    source: Source | None = None
    uncontrolled: list[str] = []
    baseline: str | None = None
    strategies: list[str] = []
    upstreams: list[str] = Field(default=["aiohttp"], min_length=1)
    workers: dict[str, int] = {}  # of an upstream, where the source and not the lab decides
    routes: list[Route] = Field(default=["direct"], min_length=1)
    instead: dict[str, str] = {}  # strategy → its replacement where it is not installed
    find_max: Conditions | None = None  # at the highest rate, which each round searches
    rounds: int = Field(default=3, ge=1, le=MOST_ROUNDS_OF_A_RUN)
    slices: int | None = Field(default=None, ge=1, le=MOST_SLICES)  # None: as many as are useful
    budget: Budget | None = None  # in place of a number of rounds
    seed: int | None = Field(default=None, ge=0, le=MOST_SEED)  # None: a new one for each run
    pin: bool = False  # each part of the testbed to CPUs of its own
    environments: dict[EnvironmentName, EnvironmentSpec] = {}
    workloads: dict[str, WorkloadTable] = {}
    arms: dict[str, ArmTable] = {}
    claims: dict[str, ClaimTable] = {}

    @model_validator(mode="after")
    def _has_arms(self) -> Self:
        if not self.strategies and not self.arms:
            raise ValueError("strategies: name some, or write [arms.NAME]")
        if not self.workloads:
            raise ValueError("workloads: there is none; write [workloads.NAME]")
        return self

    @property
    def has_link(self) -> bool:
        """Whether any of its arms is behind a link."""
        return any(table.has_link for table in (*self.workloads.values(), *self.arms.values()))

    def without_linked_controls(self) -> tuple[Experiment, list[str]]:
        """For a testbed without links of single arms: the experiment without its control arms that have one.

        The claims about these arms are left out with them. Also returns a sentence that names the arms; none without
        any, or where no other arm would be left.
        """
        names = [name for name, arm in self.arms.items() if arm.control and arm.has_link]
        arms = {name: arm for name, arm in self.arms.items() if name not in names}
        if not names or not (arms or self.strategies):
            return self, []
        claims = {name: claim for name, claim in self.claims.items() if not claim.entries & set(names)}
        return self.changed(arms=arms, claims=claims), [f"without the arms behind a link: {', '.join(names)}"]

    def behind(self, link: Link) -> Experiment:
        """The same, with this link for all arms that have none of their own."""
        parts = {part: getattr(link, part) for part in LINK_PARTS}
        return self.changed(workloads={name: one.model_copy(update=parts) for name, one in self.workloads.items()})

    def changed(self, **fields: Any) -> Experiment:
        """The experiment with other values of these fields, validated. Raises ValidationError."""
        return Experiment.model_validate({**dict(self), **fields})
