"""The plan of a run: the experiment, expanded to its arms, as the run document holds it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from clientlab.bounded_numbers import Count, Positive, Signed, Whole
from clientlab.errors import FieldError
from clientlab.redaction import MASK, mask_headers, mask_text
from clientlab.results.conditions import Conditions
from clientlab.results.figures import of_claim
from clientlab.results.part import DocumentPart, shortened
from clientlab.results.trial import MOST_ROUNDS_OF_A_RUN, MOST_SLICES, PlannedTrial
from clientlab.workload.link import LINK_PARTS, Link
from clientlab.workload.load import check_values
from clientlab.workload.workload import Workload

AxisValue = bool | Whole | Signed | str


def _claimable(name: str) -> str:
    of_claim(name)
    return name


def _computable(workload: Workload) -> Workload:
    """The workload, if reports can compute with it. Raises ValueError; pydantic adds the place."""
    try:
        check_values(workload)
    except FieldError as error:
        raise ValueError(shortened(error)) from error
    return workload


FigureName = Annotated[str, AfterValidator(_claimable)]
"""Key or full name of a figure that a claim may compare."""

MOST_ARMS = 1_000
"""Of a run. Arms of a group are ranked by the ratios of each two of them. The largest bundled experiment has 344."""

MOST_POINTS = 64
"""Values of an axis, which are the points of its sweeps. A knee is looked for by the ratios of each two of them."""

Names = list[str]
Texts = dict[str, str]

FEWEST_IN_SWEEP = 3
"""With fewer arms, none lies between two others."""


class Arm(DocumentPart):
    """One strategy in one environment, on one upstream, route and link, doing one workload: what a run compares."""

    name: Annotated[str, Field(description="unique in the run")]
    label: Annotated[str | None, Field(description="name among the arms of its group; the strategy if missing")] = None
    strategy: str
    upstream: str
    route: str
    workload: Annotated[str, Field(description="key of the experiment's workloads")]
    group: Annotated[str | None, Field(description="name of the workload in the experiment, without axes")] = None
    axes: Annotated[dict[str, AxisValue], Field(description="axis to its value")] = {}
    sweep: Annotated[str | None, Field(description="common name of the arms of one sweep")] = None
    control: Annotated[
        bool, Field(description="not in the source: it shows the effect of what the source did not control")
    ] = False
    environment: Annotated[str | None, Field(description="where its trials run; null: in the lab's own Python")] = None
    link: Annotated[
        Link | None,
        Field(description="between client and route: rtt in s, bandwidth in bit/s; null: none"),
    ] = None


class EnvironmentSpec(DocumentPart):
    """Where an environment is, or of what uv builds it."""

    folder: Annotated[str | None, Field(description="of a virtual environment, or the path of its Python")] = None
    python: Annotated[str | None, Field(description="version, as 3.13, 3.14t or pypy3.11; null: the lab's own")] = None
    requirements: Annotated[Names, Field(description="what is installed, as pip names it")] = []

    @model_validator(mode="after")
    def _is_found_or_built(self) -> Self:
        if (self.folder is None) == (self.python is None and not self.requirements):
            raise ValueError("write folder for an environment that exists, else python, requirements, or both")
        return self


class Source(DocumentPart):
    """The publication that an experiment reproduces."""

    title: str
    authors: str
    date: str
    url: str | None = None


class Claim(DocumentPart):
    """A published statement as a check: it compares a figure of two arms, or the arms of a sweep.

    `kind`: ``less``: the figure of arm `a` is less than that of `b`. ``ratio``: the figure of `b` divided by that of
    `a` lies in `band`; around 1, the arms are alike. ``optimum``: the least figure of the sweep `arms` is at neither
    end. ``spread``: the figure of `a` varies less over the rounds than that of `b`. ``narrower``: the ratio of `b` to
    `a` is less than that of `d` to `c`.
    """

    name: Annotated[str, Field(description="unique in the experiment")]
    text: str
    kind: Literal["less", "ratio", "optimum", "spread", "narrower"]
    figure: Annotated[FigureName, Field(description="key or full name of what is compared")] = "wall_seconds"
    a: str | None = None
    b: str | None = None
    c: str | None = None
    d: str | None = None
    arms: Names = []
    band: tuple[Positive, Positive] | None = None
    published: Annotated[str | None, Field(description="what the source printed")] = None
    control: bool = False


class Plan(DocumentPart):
    """The experiment, expanded to its arms, as the run carries it out."""

    name: str
    question: str
    rounds: Annotated[int, Field(description="with a precision or a budget, the fewest", ge=1, le=MOST_ROUNDS_OF_A_RUN)]
    slices: Annotated[
        int | None,
        Field(
            description="parts of a trial with a duration and warm connections, by turns; null: as many as are useful",
            ge=1,
            le=MOST_SLICES,
        ),
    ] = None
    precision: Annotated[
        Positive | None, Field(description="share; rounds were added until each ratio's interval was this narrow")
    ] = None
    time_budget: Annotated[Positive | None, Field(description="seconds, after which no round was added")] = None
    budget: Annotated[
        Positive | None,
        Field(description="seconds; rounds were added until every comparison was decided, or this time was over"),
    ] = None
    find_max: Annotated[
        Conditions | None,
        Field(description="what must hold at the highest rate, which each round searches; null: no search"),
    ] = None
    seed: Annotated[Whole, Field(description="decides the order of the trials, and what the rounds draw")]
    arms: Annotated[list[Arm], Field(max_length=MOST_ARMS)]
    baseline: Annotated[str | None, Field(description="the arm that the others are compared with")] = None
    workloads: dict[str, Annotated[Workload, AfterValidator(_computable)]]
    environments: Annotated[dict[str, EnvironmentSpec], Field(description="by the names that arms have")] = {}
    source: Source | None = None
    uncontrolled: Annotated[
        Names, Field(description="what the source did not control, or the experiment leaves out")
    ] = []
    workers: Annotated[
        dict[str, Count],
        Field(
            description="upstream to its worker processes, where the source and not the lab decides",
        ),
    ] = {}
    pin: Annotated[bool, Field(description="each part of the testbed has CPUs of its own")] = False
    shortened: Annotated[Names, Field(description="what the quick form changed")] = []
    changed: Annotated[
        Names, Field(description="what options of the command line replaced, except rounds and seed")
    ] = []
    claims: list[Claim] = []
    replaced: Annotated[Texts, Field(description="strategy that is not installed to its replacement")] = {}
    left_out: Annotated[Texts, Field(description="strategy that could not be loaded to the reason")] = {}
    unavailable_arms: Annotated[
        Texts, Field(description="arm of a bundled experiment that was left out, to what its machine lacks")
    ] = {}
    command: Annotated[str, Field(description="the command line that repeats the run")]

    def unavailable_among(self, arms: Iterable[str]) -> str:
        """Those of the arms that were left out, with what the machine lacks in parentheses; empty without one."""
        found: dict[str, list[str]] = {}
        for arm in arms:
            if reason := self.unavailable_arms.get(arm):
                found.setdefault(reason, []).append(arm)
        return ", ".join(f"{', '.join(names)} ({reason})" for reason, names in found.items())

    def masked(self) -> Self:
        """The plan as files hold it, without credentials in headers and in the addresses of requirements."""
        return self.model_copy(
            update={
                "workloads": {
                    name: replace(one, headers=mask_headers(one.headers)) for name, one in self.workloads.items()
                },
                "environments": {
                    name: spec.model_copy(update={"requirements": list(map(mask_text, spec.requirements))})
                    for name, spec in self.environments.items()
                },
            }
        )

    @property
    def masked_headers(self) -> list[str]:
        """Names of the headers whose values the run file does not hold."""
        headers = (item for workload in self.workloads.values() for item in workload.headers.items())
        return list(dict.fromkeys(name for name, value in headers if value == MASK))

    @property
    def links(self) -> list[Link]:
        """The links of its arms, each once."""
        return list(dict.fromkeys(arm.link for arm in self.arms if arm.link is not None))

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Arms do workloads of the plan, and each claim names the arms that its kind compares."""
        check_workloads("arm", ((arm.name, arm.workload) for arm in self.arms), self.workloads)
        self._check_axes()
        check_once("arms", "name", ((arm.name, *identity_of(arm)) for arm in self.arms))
        check_once("claims", "name", (claim.name for claim in self.claims))
        for arm in self.arms:
            if arm.environment is not None and arm.environment not in self.environments:
                raise ValueError(f"arm {arm.name!r}: there is no environment {arm.environment!r}")
        arms = {arm.name: arm for arm in self.arms}
        for claim in self.claims:
            _check_claim(claim, arms, self.unavailable_arms)
        return self

    def _check_axes(self) -> None:
        """Raises ValueError for an axis with too many values."""
        values: dict[str, set[AxisValue]] = {}
        for arm in self.arms:
            for axis, value in arm.axes.items():
                values.setdefault(axis, set()).add(value)
        for axis, found in values.items():
            if len(found) > MOST_POINTS:
                raise ValueError(f"axis {axis!r} has {len(found):,} values; no more than {MOST_POINTS} are compared")


def identity_of(arm: Arm | PlannedTrial) -> tuple[str | None, ...]:
    """What an arm, or a trial of it, measures: strategy, upstream, route, workload, environment, link."""
    link = None if arm.link is None else str(arm.link)
    return arm.strategy, arm.upstream, arm.route, arm.workload, arm.environment, link


def check_once(what: str, key: str, values: Iterable[object]) -> None:
    """Raises ValueError for the first value that is there twice."""
    seen = set()
    for value in values:
        if value in seen:
            raise ValueError(f"two {what} have the {key} {value!r}")
        seen.add(value)


def check_workloads(what: str, used: Iterable[tuple[str, str]], known: Collection[str]) -> None:
    """Raises ValueError for the first (name, workload) whose workload is unknown."""
    for name, workload in used:
        if workload not in known:
            raise ValueError(f"{what} {name!r}: there is no workload {workload!r}")


def _check_claim(claim: Claim, arms: Mapping[str, Arm], unavailable: Collection[str]) -> None:
    of_sweep = claim.kind == "optimum"
    sides = 0 if of_sweep else 4 if claim.kind == "narrower" else 2
    named = [name is not None for name in (claim.a, claim.b, claim.c, claim.d)]
    if named != [True] * sides + [False] * (4 - sides) or of_sweep != bool(claim.arms):
        raise ValueError(f"claim {claim.name!r}: it does not name what a claim of kind {claim.kind!r} is made of")
    if of_sweep and len(claim.arms) < FEWEST_IN_SWEEP:
        raise ValueError(f"claim {claim.name!r}: a sweep has {FEWEST_IN_SWEEP} arms or more, and not {claim.arms}")
    for name in claim.arms:
        if name not in unavailable and (name not in arms or not arms[name].axes):
            raise ValueError(f"claim {claim.name!r}: there is no arm {name!r} with a place on an axis")
    values = [next(iter(arms[name].axes.values())) for name in claim.arms if name in arms]
    if len(set(values)) < len(values):
        raise ValueError(f"claim {claim.name!r}: two of its arms have the same value on the axis")


def suffix_of(place: Mapping[str, AxisValue]) -> str:
    """A place on axes as the names of arms and workloads end: ``[concurrency=8, pool=2]``."""
    return f"[{', '.join(f'{key}={as_text(value)}' for key, value in place.items())}]" if place else ""


def as_text(value: AxisValue) -> str:
    """A value as it stands in the settings of a strategy."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def number_on(axis: str, arm: Arm) -> float | None:
    """The arm's number on an axis: seconds of its link's round trip, bits per second; None for a text."""
    if axis in LINK_PARTS and arm.link is not None:
        number: float | None = getattr(arm.link, axis)
        return number
    value = arm.axes[axis]
    return None if isinstance(value, str) else float(value)
