"""The plan of a run: the experiment, expanded to its arms, as the run document holds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic import NonNegativeInt as Count
from pydantic import PositiveFloat as Positive

from clientlab.redaction import mask_headers, mask_text
from clientlab.results.conditions import Conditions
from clientlab.results.figures import of_claim
from clientlab.results.trial import MOST_ROUNDS_OF_A_RUN, MOST_SLICES
from clientlab.validation import DocumentPart
from clientlab.workload.link import LINK_PARTS, Link
from clientlab.workload.workload import Workload

AxisValue = bool | int | float | str


def _claimable(name: str) -> str:
    of_claim(name)
    return name


FigureName = Annotated[str, AfterValidator(_claimable)]
"""Key or full name of a figure that a claim may compare."""

MOST_ARMS = 1_000
"""Of a run. Arms of a group are ranked by the ratios of each two of them. The largest bundled experiment has 344."""

Names = list[str]
Texts = dict[str, str]

FEWEST_IN_SWEEP = 3
"""With fewer arms, none lies between two others."""


class Arm(DocumentPart):
    """One strategy in one environment, on one upstream, route and link, doing one workload: what a run compares."""

    name: str  # unique in the run
    label: str | None = None  # name among the arms of its group; the strategy if missing
    strategy: str
    upstream: str
    route: str
    workload: str  # key of the experiment's workloads
    group: str | None = None  # name of the workload in the experiment, without axes
    axes: dict[str, AxisValue] = {}  # axis to its value
    sweep: str | None = None  # common name of the arms of one sweep
    control: bool = False  # not in the source: it shows the effect of what the source did not control
    environment: str | None = None  # where its trials run; None: in the lab's own Python
    link: Link | None = None  # between client and route: rtt in s, bandwidth in bit/s; None: none


class EnvironmentSpec(DocumentPart):
    """Where an environment is, or of what uv builds it."""

    folder: str | None = None  # of a virtual environment, or the path of its Python
    python: str | None = None  # version, as 3.13, 3.14t or pypy3.11; None: the lab's own
    requirements: Names = []  # what is installed, as pip names it

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

    name: str  # unique in the experiment
    text: str
    kind: Literal["less", "ratio", "optimum", "spread", "narrower"]
    figure: FigureName = "wall_seconds"  # key or full name of what is compared
    a: str | None = None
    b: str | None = None
    c: str | None = None
    d: str | None = None
    arms: Names = []
    band: tuple[Positive, Positive] | None = None
    published: str | None = None  # what the source printed
    control: bool = False


class Plan(DocumentPart):
    """The experiment, expanded to its arms, as the run carries it out."""

    name: str
    question: str
    rounds: Annotated[int, Field(ge=1, le=MOST_ROUNDS_OF_A_RUN)]  # with a precision or a budget, the fewest
    slices: Annotated[int | None, Field(ge=1, le=MOST_SLICES)] = None  # of a trial; None: as many as are useful
    precision: Positive | None = None  # share; rounds were added until each ratio's interval was this narrow
    time_budget: Positive | None = None  # seconds, after which no round was added
    budget: Positive | None = None  # seconds, unless every comparison was decided before
    find_max: Conditions | None = None  # what must hold at the highest rate, which each round searches; None: no search
    seed: int  # decides the order of the trials, and what the rounds draw
    arms: Annotated[list[Arm], Field(max_length=MOST_ARMS)]
    baseline: str | None = None  # the arm that the others are compared with
    workloads: dict[str, Workload]
    environments: dict[str, EnvironmentSpec] = {}  # by the names that arms have
    source: Source | None = None
    uncontrolled: Names = []  # what the source did not control, or the experiment leaves out
    workers: dict[str, Count] = {}  # upstream to its worker processes, where the source and not the lab decides
    pin: bool = False  # each part of the testbed has CPUs of its own
    shortened: Names = []  # what the quick form changed
    changed: Names = []  # what options of the command line replaced, except rounds and seed
    claims: list[Claim] = []
    replaced: Texts = {}  # strategy that is not installed to its replacement
    left_out: Texts = {}  # strategy that could not be loaded to the reason
    unavailable_arms: Texts = {}  # arm of a bundled experiment that was left out, to what its machine lacks
    command: str  # the command line that repeats the run

    def unavailable_among(self, arms: Iterable[str]) -> str:
        """Return those of the arms that were left out, with what the machine lacks in parentheses."""
        found: dict[str, list[str]] = {}
        for arm in arms:
            if reason := self.unavailable_arms.get(arm):
                found.setdefault(reason, []).append(arm)
        return ", ".join(f"{', '.join(names)} ({reason})" for reason, names in found.items())

    def masked(self) -> Self:
        """Return the plan as files hold it, without credentials in headers and in the addresses of requirements."""
        loads = {name: replace(one, headers=mask_headers(one.headers)) for name, one in self.workloads.items()}
        specs = {
            name: spec.model_copy(update={"requirements": list(map(mask_text, spec.requirements))})
            for name, spec in self.environments.items()
        }
        return self.model_copy(update={"workloads": loads, "environments": specs})

    @property
    def links(self) -> list[Link]:
        """The links of its arms, each once."""
        return list(dict.fromkeys(arm.link for arm in self.arms if arm.link is not None))


def suffix_of(place: Mapping[str, AxisValue]) -> str:
    """Return a place on axes as the names of arms and workloads end: ``[concurrency=8, pool=2]``."""
    return f"[{', '.join(f'{key}={as_text(value)}' for key, value in place.items())}]" if place else ""


def as_text(value: AxisValue) -> str:
    """Return a value as it stands in the settings of a strategy."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def number_on(axis: str, arm: Arm) -> float | None:
    """Return the arm's number on an axis: seconds of its link's round trip, bits per second; None for a text."""
    value = arm.axes[axis] if arm.link is None or axis not in LINK_PARTS else getattr(arm.link, axis)
    return None if value is None or isinstance(value, str) else float(value)
