"""The plan of a run: the experiment, expanded to its arms, as the run document holds
it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic import PositiveFloat as Positive

from clientlab.results.figures import FIGURES, Figure, of_claim
from clientlab.settings import MOST_WORKERS, write_setting
from clientlab.text import mask_headers, mask_text
from clientlab.trial.result import MOST_ROUNDS_OF_A_RUN, MOST_SLICES
from clientlab.units import WRITTEN, wanted
from clientlab.validation import DocumentPart
from clientlab.workload.values import LINK_PARTS, Link, ParsedBy, Written
from clientlab.workload.workload import MOST_SEED, Switch, Time, Workload

AxisValue = bool | int | float | str
Names = list[str]
Texts = dict[str, str]

# Of one run; a report compares every two arms of a group; the largest bundled
# experiment has 344.
_MOST_ARMS = 1_000
# What the names of environments and of the user's own servers look like.
VERSION_NAME = r"^[A-Za-z0-9][\w.-]{0,31}$"
VersionName = Annotated[str, Field(pattern=VERSION_NAME)]
# The upstream of all arms on the user's named servers: arms with one upstream are
# compared.
OWN_UPSTREAM = "own"
FIRST_RATE = 100.0  # requests per second; a search tries about this rate first
_CONDITION = re.compile(r"(\w+)\s*<\s*(\d+(?:\.\d+)?)\s*([^\s\d]*)")

_CONDITION_FIGURES = {
    name: figure
    for figure in FIGURES
    if figure.less_is_better
    and not figure.scheduled
    and not figure.total
    and not figure.needs
    for name in (figure.key, figure.name)
}
"""Key or full name → figure that can be a condition."""


def _check_figure(name: str) -> str:
    of_claim(name)
    return name


def parse_share(text: str) -> float:
    """Parse a share between 0 and 1: 3% or 0.03. Raise ValueError."""
    try:
        share = float(text.strip().removesuffix("%")) / (
            100 if text.strip().endswith("%") else 1
        )
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise ValueError(f"{text!r} is not a share between 0 and 1; write 3% or 0.03")
    return share


class Arm(DocumentPart):
    """One strategy in one environment, on one upstream, route and link, doing one
    workload: what a run compares.

    Each of the user's named servers has its own arms.
    """

    name: str  # unique in the run
    label: str | None = (
        None  # name among the arms of its group; the strategy if missing
    )
    strategy: str
    upstream: str
    route: str
    workload: str  # key of the experiment's workloads
    group: str | None = None  # name of the workload in the experiment, without axes
    axes: dict[str, AxisValue] = {}  # axis → value
    sweep: str | None = None  # common name of the arms of one sweep
    control: bool = (
        False  # added by the lab, to show the effect of what the source did not control
    )
    environment: str | None = (
        None  # where its trials run; None: in the lab's own Python
    )
    server: str | None = (
        # Name of the user's own server; None: it has no name, or is one of the lab's.
        None
    )
    link: Link | None = None  # between client and route

    @property
    def target(self) -> tuple[str, str]:
        """The upstream, or the named server, and the route: what testbeds call by these
        names.
        """
        return self.server or self.upstream, self.route

    @property
    def shared_workload(self) -> str:
        """The name of its workload, without the name of the server if each server has a
        workload of its own.
        """
        return self.workload.removesuffix(f" at {self.server}")


class EnvironmentSpec(DocumentPart):
    """Where an environment is, or what uv builds it from."""

    folder: str | None = None  # of a virtual environment, or the path of its Python
    python: str | None = None  # version: 3.13, 3.14t or pypy3.11; None: the lab's own
    requirements: Names = []  # what pip would install

    @model_validator(mode="after")
    def _is_found_or_built(self) -> Self:
        if (self.folder is None) == (self.python is None and not self.requirements):
            raise ValueError(
                "write folder if the environment exists, otherwise python,"
                " requirements, or both"
            )
        return self


class Source(DocumentPart):
    """The publication that an experiment reproduces."""

    title: str
    authors: str
    date: str
    url: str | None = None


class Target(DocumentPart):
    """The servers of a run: processes of the lab (local), running containers (compose),
    the user's own (external).
    """

    testbed: Literal["local", "compose", "external"]
    url: str | None = None  # of an external server without a name
    servers: Texts = {}  # name → URL of external servers
    ca_file: str | None = (
        # Path of the CA to trust for external servers; None: the CAs of each library.
        None
    )

    @property
    def urls(self) -> Texts:
        """The URLs of external servers by name; the name of a single one
        may be empty.
        """
        return self.servers if self.url is None else {"": self.url}

    def masked(self) -> Self:
        """Return the target for files, without credentials in URLs."""
        servers = {name: mask_text(url) for name, url in self.servers.items()}
        return self.model_copy(
            update={"url": self.url and mask_text(self.url), "servers": servers}
        )


class ClaimParts(DocumentPart):
    """A published statement as a check that compares a figure of two arms, or of the
    arms of a sweep.

    The kinds are ``less``: `a` is less than `b`; ``ratio``: `b` divided by `a` lies in
    `band`, and a band around 1 means that the arms are alike; ``optimum``: the smallest
    value of the sweep `arms` is not at its ends; ``spread``: `a` varies less over the
    rounds than `b`; ``narrower``: the ratio of `b` to `a` is less than that of `d` to
    `c`.
    """

    text: str
    kind: Literal["less", "ratio", "optimum", "spread", "narrower"]
    figure: Annotated[str, AfterValidator(_check_figure)] = (
        "wall_seconds"  # key or full name of what is compared
    )
    a: str | None = None
    b: str | None = None
    c: str | None = None
    d: str | None = None
    band: tuple[Positive, Positive] | None = None
    published: str | None = None  # what the source printed
    control: Switch = False


class Claim(ClaimParts):
    """A claim about arms of a plan. `arms` are those of a sweep."""

    name: str  # unique in the experiment
    arms: Names = []


@dataclass(frozen=True)
class Conditions(Written):
    """Conditions of `--find-max` that must all hold: ``p99<250ms,errors<0.1%``.

    `limits`: in the figures' units.
    """

    text: str
    limits: tuple[tuple[Figure, float], ...]

    @classmethod
    def parse(cls, text: str) -> Conditions:
        """Parse conditions. Raise ValueError that says what to write."""
        limits = []
        for part in text.split(","):
            match = _CONDITION.fullmatch(part.strip())
            if match is None:
                raise ValueError(
                    f"{part!r}: write a figure and what it must stay below, as"
                    " 'p99<250ms,errors<0.1%'"
                )
            name, number, unit = match.groups()
            figure = _CONDITION_FIGURES.get(name)
            if figure is None:
                known = ", ".join(
                    dict.fromkeys(one.key for one in _CONDITION_FIGURES.values())
                )
                raise ValueError(f"{name!r} is not one of {known}")
            if unit not in WRITTEN[figure.unit]:
                raise ValueError(f"{part!r}: {wanted(figure.unit, f'{name}<{number}')}")
            limits.append((figure, float(number) * WRITTEN[figure.unit][unit]))
        return cls(text, tuple(limits))

    def __str__(self) -> str:
        return self.text


class RunSettings(DocumentPart):
    """How a run is carried out.

    Experiment files, options of `clientlab run` and plans share these fields.
    """

    rounds: Annotated[int, Field(strict=True, ge=1, le=MOST_ROUNDS_OF_A_RUN)] = (
        3  # the fewest, if rounds are added
    )
    slices: Annotated[int, Field(strict=True, ge=1, le=MOST_SLICES)] | None = (
        None  # per trial; None: the lab chooses
    )
    budget: Annotated[Time, Field(gt=0)] | None = (
        None  # add rounds this long (s) or until all is decided
    )
    precision: Annotated[Positive, ParsedBy(parse_share), Field(lt=1)] | None = (
        None  # add rounds until this narrow
    )
    find_max: Conditions | None = (
        None  # search the highest rate at which these conditions hold
    )
    seed: Annotated[int, Field(strict=True, ge=0, le=MOST_SEED)] | None = (
        None  # of all random choices; None: a new one
    )
    pin: Switch = False  # give each part of the testbed its own CPUs


class ExperimentParts(RunSettings):
    """What an experiment and its plan have in common."""

    name: str
    question: str
    source: Source | None = None
    # What the source did not control, or the experiment leaves out.
    uncontrolled: Names = []
    baseline: str | None = None  # the arm that the others are compared with
    workers: dict[
        str, Annotated[int, Field(ge=1, le=MOST_WORKERS)]
    ] = {}  # of upstreams, as in the source
    environments: dict[VersionName, EnvironmentSpec] = {}
    shortened: Names = []  # what the quick form changed


class Plan(ExperimentParts):
    """The experiment, expanded to its arms, as the run carries it out."""

    seed: int
    time_budget: Positive | None = (
        None  # with a precision: seconds after which no round is added
    )
    arms: Annotated[list[Arm], Field(max_length=_MOST_ARMS)]
    workloads: dict[str, Workload]
    # What options of the command line replaced, except rounds and seed.
    changed: Names = []
    claims: list[Claim] = []
    replaced: Texts = {}  # strategy that is not installed → its replacement
    left_out: Texts = {}  # strategy that could not be loaded → the reason
    # Arm of a bundled experiment that was left out → what its machine lacks.
    unavailable_arms: Texts = {}
    command: str  # the command line that repeats the run

    def schedule(self, rounds: int) -> list[tuple[int, str]]:
        """Return (round, name of the arm) in the order of execution.

        Rounds count from 1; each is shuffled anew.
        """
        order: list[tuple[int, str]] = []
        for number in range(1, rounds + 1):
            names = [arm.name for arm in self.arms]
            random.Random(f"{self.seed}:{number}").shuffle(names)  # noqa: S311 - an order, not a secret
            order += [(number, name) for name in names]
        return order

    def unavailable_among(self, arms: Iterable[str]) -> str:
        """Return the arms that were left out, with what the machine lacks in
        parentheses.
        """
        found: dict[str, list[str]] = {}
        for arm in arms:
            if reason := self.unavailable_arms.get(arm):
                found.setdefault(reason, []).append(arm)
        return ", ".join(
            f"{', '.join(names)} ({reason})" for reason, names in found.items()
        )

    def masked(self) -> Self:
        """Return the plan for files, without credentials in headers, paths and the
        addresses of requirements.
        """
        loads = {
            name: replace(
                one, headers=mask_headers(one.headers), path=mask_text(one.path)
            )
            for name, one in self.workloads.items()
        }
        specs = {
            name: spec.model_copy(
                update={"requirements": list(map(mask_text, spec.requirements))}
            )
            for name, spec in self.environments.items()
        }
        return self.model_copy(update={"workloads": loads, "environments": specs})

    @property
    def links(self) -> list[Link]:
        """The different links of its arms."""
        return list(
            dict.fromkeys(arm.link for arm in self.arms if arm.link is not None)
        )


def suffix_of(place: Mapping[str, AxisValue]) -> str:
    """Return the end of a name for a point on axes: ``[concurrency=8, pool=2]``."""
    settings = (f"{key}={write_setting(value)}" for key, value in place.items())
    return f"[{', '.join(settings)}]" if place else ""


def number_on(axis: str, arm: Arm) -> float | None:
    """Return the value of an arm on an axis as a number, or None for a text.

    Links have seconds and bits per second.
    """
    value = (
        arm.axes[axis]
        if arm.link is None or axis not in LINK_PARTS
        else getattr(arm.link, axis)
    )
    return None if value is None or isinstance(value, str) else float(value)
