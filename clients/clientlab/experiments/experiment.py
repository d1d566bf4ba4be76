"""An experiment as its file has it: tables of workloads, arms and claims. Nothing is expanded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, model_validator

from clientlab.results.conditions import Conditions
from clientlab.results.plan import AxisValue, EnvironmentSpec, FigureName, Source
from clientlab.results.trial import MOST_ROUNDS_OF_A_RUN, MOST_SLICES
from clientlab.workload.delays import seconds
from clientlab.workload.link import LINK_PARTS, Link, bandwidth_of, rtt_of
from clientlab.workload.seeds import MOST_SEED
from clientlab.workload.workload import Switch, Workload
from clientlab.workload.written import ParsedBy, text_of

NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"
EnvironmentName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]{0,31}$")]
Route = Literal["direct", "proxy", "proxy-tls"]


def each_once(values: list[Any]) -> list[Any]:
    """Return the values of an axis. Raises ValueError without any, and for one that is there twice."""
    if not values or len(set(map(repr, values))) < len(values):
        raise ValueError("an axis is a list of values, each once")
    return values


def _parsed_by(parse: Callable[[str], float]) -> BeforeValidator:
    """Return a validator that parses a value as options are, or an axis of several."""

    def values(given: object) -> float | list[float]:
        if isinstance(given, list):
            return each_once([parse(text_of(one)) for one in given])
        return parse(text_of(given))

    return BeforeValidator(values)


class Table(BaseModel):
    """A table of the file: immutable, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FileTables(BaseModel):
    """The tables of a file that are no part of the experiment as they stand.

    `common` holds fields of every workload without its own value; `quick` holds the values of the quick form.
    """

    common: dict[str, Any] = {}
    workloads: dict[str, dict[str, Any]] = {}
    quick: dict[str, Any] = {}


class LinkedTable(Table):
    """A table whose arms may be behind a link. A list is an axis."""

    rtt: Annotated[float | list[float], _parsed_by(rtt_of)] | None = None
    bandwidth: Annotated[float | list[float], _parsed_by(bandwidth_of)] | None = None

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


class ArmTable(LinkedTable):
    """``[arms.NAME]``: arms with every workload, upstream, route and environment that the table does not choose.

    A list as `concurrency`, `rtt` or `bandwidth`, or as a setting of the strategy, is an axis: one arm for each of
    its values.
    """

    strategy: str
    settings: dict[str, AxisValue | list[AxisValue]] = {}
    concurrency: int | list[int] | None = None
    workload: str | None = None
    upstream: str | None = None
    route: Route | None = None
    environment: str | None = None
    control: Switch = False


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
    control: Switch = False

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

    name: str = Field(pattern=NAME)
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
    rounds: int = Field(default=3, strict=True, ge=1, le=MOST_ROUNDS_OF_A_RUN)
    slices: int | None = Field(default=None, strict=True, ge=1, le=MOST_SLICES)  # None: as many as are useful
    budget: Annotated[float, ParsedBy(seconds), Field(gt=0)] | None = None  # seconds, in place of a number of rounds
    seed: int | None = Field(default=None, strict=True, ge=0, le=MOST_SEED)  # None: a new one for each run
    pin: Switch = False  # each part of the testbed to CPUs of its own
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
        """Return the experiment without its control arms that have a link, and the claims about them.

        For a testbed without links of single arms. Also returns a sentence that names the arms, if there are any.
        """
        names = [name for name, arm in self.arms.items() if arm.control and arm.has_link]
        arms = {name: arm for name, arm in self.arms.items() if name not in names}
        if not names or not (arms or self.strategies):
            return self, []
        claims = {}
        for name, claim in self.claims.items():
            compared = filter(None, (claim.a, claim.b, claim.c, claim.d, claim.sweep))
            if not {arm.partition("[")[0].partition(" (")[0] for arm in compared} & set(names):
                claims[name] = claim
        return self.changed(arms=arms, claims=claims), [f"without the arms behind a link: {', '.join(names)}"]

    def behind(self, link: Link) -> Experiment:
        """The same, with this link for all arms that have none of their own."""
        parts = {part: getattr(link, part) for part in LINK_PARTS}
        return self.changed(workloads={name: one.model_copy(update=parts) for name, one in self.workloads.items()})

    def changed(self, **fields: Any) -> Experiment:
        """The experiment with other values of these fields, validated. Raises ValidationError."""
        return Experiment.model_validate({**dict(self), **fields})
