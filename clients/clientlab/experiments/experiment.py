"""An experiment as its file describes it: tables of workloads, arms and claims, not
expanded yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    model_validator,
)

from clientlab.errors import FieldError
from clientlab.results.plan import (
    OWN_UPSTREAM,
    AxisValue,
    ClaimParts,
    ExperimentParts,
    VersionName,
)
from clientlab.validation import validate
from clientlab.workload.parts import Switch
from clientlab.workload.values import LINK_PARTS, parse_bandwidth, parse_rtt, text_of
from clientlab.workload.workload import Workload, flatten, name_of, nest

NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"
Route = Literal["direct", "proxy", "proxy-tls"]

_WORKLOADS = TypeAdapter(Workload)


def validate_workload(values: Mapping[str, Any]) -> Workload:
    """Return the workload of these fields, by name. Raise FieldError."""
    document = nest(values)
    try:
        return validate(_WORKLOADS.validate_python, document)
    except FieldError as error:
        key = name_of(error.key)
        raise FieldError(key, error.message, value=error.value) from error


def check_axis(values: list[Any]) -> list[Any]:
    """Return the values of an axis.

    Raise ValueError if there are none, or if one appears twice.
    """
    if not values or len(set(map(repr, values))) < len(values):
        raise ValueError("an axis is a list of values, each once")
    return values


def _one_or_axis(parse: Callable[[str], float]) -> BeforeValidator:
    """Return a validator that parses one value as options do, or each value
    of an axis.
    """

    def parse_values(given: object) -> float | list[float]:
        if isinstance(given, list):
            return check_axis([parse(text_of(one)) for one in given])
        return parse(text_of(given))

    return BeforeValidator(parse_values)


class LinkedTable(BaseModel):
    """A table of the file whose arms may be behind a link. A list is an axis."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rtt: Annotated[float | list[float], _one_or_axis(parse_rtt)] | None = None
    bandwidth: Annotated[float | list[float], _one_or_axis(parse_bandwidth)] | None = (
        None
    )

    @property
    def link_parts(self) -> dict[str, float | list[float]]:
        """The parts of the link that the table describes."""
        return {
            part: value
            for part in LINK_PARTS
            if (value := getattr(self, part)) is not None
        }


class WorkloadTable(LinkedTable):
    """``[workloads.NAME]``: the workload with the first value of each axis, and all
    values of each axis.

    Arms without their own `rtt` and `bandwidth` get those of this table.
    """

    first: Workload
    axes: dict[str, list[AxisValue]] = {}

    def at(self, place: Mapping[str, AxisValue]) -> Workload:
        """Return the workload with these values of its axes. Raise FieldError."""
        return (
            validate_workload({**flatten(self.first), **place}) if place else self.first
        )


class ArmTable(LinkedTable):
    """``[arms.NAME]``: arms with every workload, upstream, route, environment and
    server that it does not choose.

    A list as `concurrency`, `rtt`, `bandwidth` or setting of the strategy is an axis:
    each value makes one arm.
    """

    strategy: str
    settings: dict[str, AxisValue | list[AxisValue]] = {}
    concurrency: int | list[int] | None = None
    workload: str | None = None
    upstream: str | None = None
    route: Route | None = None
    environment: str | None = None
    server: str | None = None
    control: Switch = False


class ClaimTable(ClaimParts):
    """``[claims.NAME]``: `a` to `d` name arms; ``SWEEP[first]`` and ``SWEEP[last]`` are
    the ends of a sweep.

    In `text`, ``{requests}`` stands for the number of requests of the arms, which the
    quick form may change.
    """

    sweep: str | None = None

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        kinds = {
            "ratio": {"a", "b", "band"},
            "optimum": {"sweep"},
            "narrower": {"a", "b", "c", "d"},
        }
        needed = kinds.get(self.kind, {"a", "b"})
        given = {
            key
            for key in ("a", "b", "c", "d", "sweep", "band")
            if getattr(self, key) is not None
        }
        if needed != given:
            raise ValueError(
                f"a claim of kind {self.kind!r} needs {', '.join(sorted(needed))} and"
                " no others"
            )
        if self.band and self.band[0] >= self.band[1]:
            raise ValueError("band: write the lower end first")
        return self


class Experiment(ExperimentParts):
    """Workloads × strategies × upstreams × routes × environments × servers × axes, in
    rounds.
    """

    name: str = Field(pattern=NAME)
    strategies: list[str] = []
    upstreams: list[str] = Field(default=["aiohttp"], min_length=1)
    routes: list[Route] = Field(default=["direct"], min_length=1)
    servers: dict[
        VersionName, str
    ] = {}  # name → URL of the user's own servers, which replace the lab's upstreams
    instead: dict[str, str] = {}  # strategy → its replacement if it is not installed
    workloads: dict[str, WorkloadTable] = {}
    arms: dict[str, ArmTable] = {}
    claims: dict[str, ClaimTable] = {}

    @model_validator(mode="after")
    def _has_arms(self) -> Self:
        if not self.strategies and not self.arms:
            raise ValueError("strategies: name some, or write [arms.NAME]")
        if not self.workloads:
            raise ValueError("workloads: there is none; write [workloads.NAME]")
        if self.servers and (self.upstreams, self.routes) != (
            [OWN_UPSTREAM],
            ["direct"],
        ):
            raise ValueError(
                "servers: they have neither upstreams nor routes of the lab; leave"
                " these out"
            )
        return self

    def changed(self, **fields: Any) -> Experiment:
        """Return the experiment with other values of these fields, validated.

        Raise ValidationError.
        """
        return Experiment.model_validate({**dict(self), **fields})
