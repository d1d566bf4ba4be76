"""An experiment as its file has it: tables of workloads, arms and claims. Nothing is expanded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from clientlab.results.capacity_search import CapacitySearch
from clientlab.results.plan import AxisValue, EnvironmentSpec, FigureName, Source
from clientlab.results.trial import MOST_ROUNDS_OF_A_RUN
from clientlab.workload.link import Link, bandwidth_of, rtt_of
from clientlab.workload.workload import Workload

NAME = r"^[a-z0-9][a-z0-9.-]*$"
MOST_CHARACTERS = 64
ENVIRONMENT = r"^[A-Za-z0-9][\w.-]{0,31}$"
EnvironmentName = Annotated[str, Field(pattern=ENVIRONMENT)]
Route = Literal["direct", "proxy", "proxy-tls"]


_Texts = str | list[str]


def _checked_by(parse: Callable[[str], float]) -> AfterValidator:
    """A validator of texts that `parse` reads: one, or an axis of several, each once."""

    def check(texts: _Texts) -> _Texts:
        values = list(map(parse, [texts] if isinstance(texts, str) else texts))
        if not values or len(set(values)) < len(values):
            raise ValueError("an axis is a list of values, each once")
        return texts

    return AfterValidator(check)


RoundTrips = Annotated[_Texts, _checked_by(rtt_of)]
"""One round-trip time, or an axis of them: ``"35ms"``."""
Bandwidths = Annotated[_Texts, _checked_by(bandwidth_of)]
"""One bandwidth, or an axis of them: ``"20mbit"``."""

LINK_AXES = ("rtt", "bandwidth")
"""The parts of a link, each of which may be an axis."""


class Table(BaseModel):
    """A table of the file: immutable, and without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class WorkloadTable(Table):
    """``[workloads.NAME]``: the workload with the first value of each axis, and all values of each axis.

    `rtt`, `bandwidth`: of the link of its arms, unless they have their own. With neither, there is no link.
    """

    first: Workload
    axes: dict[str, list[AxisValue]] = {}
    rtt: RoundTrips | None = None
    bandwidth: Bandwidths | None = None


class ArmTable(Table):
    """``[arms.NAME]``: arms with every workload, upstream, route and environment that the table does not choose.

    A list as `concurrency`, `rtt` or `bandwidth`, or as a setting of the strategy, is an axis: one arm for each of its
    values.
    """

    strategy: str
    settings: dict[str, AxisValue | list[AxisValue]] = {}
    concurrency: int | list[int] | None = None
    workload: str | None = None
    upstream: str | None = None
    route: Route | None = None
    rtt: RoundTrips | None = None
    bandwidth: Bandwidths | None = None
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
    ceilings: bool = False  # of each server, measured before the first round
    find_max: CapacitySearch | None = None
    rounds: int = Field(default=3, ge=1, le=MOST_ROUNDS_OF_A_RUN)
    seed: int = 1
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
        tables = (*self.workloads.values(), *self.arms.values())
        return any(getattr(table, part) is not None for table in tables for part in LINK_AXES)

    def without_linked_controls(self) -> tuple[Experiment, list[str]]:
        """For a testbed without links of single arms: the experiment without its control arms that have one.

        The claims about these arms are left out with them. Also returns a sentence that names the arms; none without
        any, or where no other arm would be left.
        """
        names = [name for name, arm in self.arms.items() if arm.control and (arm.rtt or arm.bandwidth)]
        arms = {name: arm for name, arm in self.arms.items() if name not in names}
        if not names or not (arms or self.strategies):
            return self, []
        claims = {name: claim for name, claim in self.claims.items() if not claim.entries & set(names)}
        return self.changed(arms=arms, claims=claims), [f"without the arms behind a link: {', '.join(names)}"]

    def behind(self, link: Link) -> Experiment:
        """The same, with this link for all arms that have none of their own."""
        parts = dict(zip(LINK_AXES, link.texts, strict=False))
        return self.changed(workloads={name: one.model_copy(update=parts) for name, one in self.workloads.items()})

    def changed(self, **fields: Any) -> Experiment:
        """The experiment with other values of these fields, validated. Raises ValidationError."""
        return Experiment.model_validate({**dict(self), **fields})
