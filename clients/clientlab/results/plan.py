"""The plan of a run: the experiment, expanded to its arms."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic import PositiveFloat as Positive

from clientlab.results.figures import FIGURES, Figure, of_claim
from clientlab.results.trial import MOST_ROUNDS_OF_A_RUN, MOST_SLICES
from clientlab.settings import MOST_WORKERS, write_setting
from clientlab.text import mask_headers, mask_text
from clientlab.units import WRITTEN, wanted
from clientlab.validation import DocumentPart
from clientlab.workload.parts import Switch, Time
from clientlab.workload.values import LINK_PARTS, Link, ParsedBy, Written
from clientlab.workload.workload import MOST_SEED, Workload, change

AxisValue = bool | int | float | str
Names = list[str]
Texts = dict[str, str]

# Of a run. A report compares every two arms of a group, and the largest bundled
# experiment has 344 arms.
_MOST_ARMS = 1_000
# What the names of environments and of the user's own servers look like.
VERSION_NAME = r"^[A-Za-z0-9][\w.-]{0,31}$"
VersionName = Annotated[str, Field(pattern=VERSION_NAME)]
# The upstream of all arms on the user's named servers. Only arms with the same upstream
# are compared.
OWN_UPSTREAM = "own"
FIRST_RATE = 100.0  # requests per second; a search tries about this rate first
_CONDITION = re.compile(r"(\w+)\s*<\s*(\d+(?:\.\d+)?)\s*([^\s\d]*)")

_CONDITION_FIGURES = {
    figure.key: figure
    for figure in FIGURES
    if figure.less_is_better and not (figure.scheduled or figure.total or figure.needs)
}
_CONDITION_FIGURES |= {figure.name: figure for figure in _CONDITION_FIGURES.values()}
"""Key or full name → figure that can be a condition."""


def _check_figure(name: str) -> str:
    of_claim(name)
    return name


def parse_share(text: str) -> float:
    """Parse a share between 0 and 1: 3% or 0.03. Raise ValueError."""
    number = text.strip()
    size = 1
    if number.endswith("%"):
        number = number[:-1]
        size = 100
    try:
        share = float(number) / size
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise ValueError(f"{text!r} is not a share between 0 and 1; write 3% or 0.03")
    return share


class Arm(DocumentPart):
    """What a run compares: one strategy doing one workload on one way to a server.

    Each of the user's named servers has its own arms.
    """

    name: str  # unique in the run
    label: str | None = None  # name in its group; None: the strategy
    strategy: str
    upstream: str
    route: str
    workload: str  # key of the experiment's workloads
    group: str | None = None  # name of the workload in the experiment, without axes
    axes: dict[str, AxisValue] = {}  # axis → value
    sweep: str | None = None  # common name of the arms of one sweep
    # Added by the lab, to show the effect of what the source did not control.
    control: bool = False
    environment: str | None = None  # of its trials; None: the lab's own Python
    # Name of the user's own server. None: it has no name, or is one of the lab's.
    server: str | None = None
    link: Link | None = None  # between client and route

    @property
    def target(self) -> tuple[str, str]:
        """The upstream or the named server, and the route, for testbeds."""
        return self.server or self.upstream, self.route

    @property
    def shared_workload(self) -> str:
        """The name of its workload, without the server's if each has its own."""
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
    """The servers of a run.

    They are processes of the lab (local), containers (compose), or the user's own
    (external).
    """

    testbed: Literal["local", "compose", "external"]
    url: str | None = None  # of an external server without a name
    servers: Texts = {}  # name → URL of external servers
    # Path of the CA to trust for external servers. None: the CAs of each library.
    ca_file: str | None = None

    @property
    def urls(self) -> Texts:
        """The URLs of external servers by name, which is empty for a single one."""
        return self.servers if self.url is None else {"": self.url}

    def masked(self) -> Self:
        """Return the target for files, without credentials in URLs."""
        url = None if self.url is None else mask_text(self.url)
        servers = {name: mask_text(url) for name, url in self.servers.items()}
        return self.updated(url=url, servers=servers)


class ClaimParts(DocumentPart):
    """A published statement as a check of a figure of two arms, or of a sweep.

    The kinds are ``less``: `a` is less than `b`; ``ratio``: `b` divided by `a` lies in
    `band`, and a band around 1 means that the arms are alike; ``optimum``: the smallest
    value of the sweep `arms` is not at its ends; ``spread``: `a` varies less over the
    rounds than `b`; ``narrower``: the ratio of `b` to `a` is less than that of `d` to
    `c`.
    """

    text: str
    kind: Literal["less", "ratio", "optimum", "spread", "narrower"]
    # Key or full name of what is compared.
    figure: Annotated[str, AfterValidator(_check_figure)] = "wall_seconds"
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
                keys = dict.fromkeys(
                    candidate.key for candidate in _CONDITION_FIGURES.values()
                )
                known = ", ".join(keys)
                raise ValueError(f"{name!r} is not one of {known}")
            sizes = WRITTEN[figure.unit]
            if unit not in sizes:
                raise ValueError(f"{part!r}: {wanted(figure.unit, f'{name}<{number}')}")
            limits.append((figure, float(number) * sizes[unit]))
        return cls(text, tuple(limits))

    def __str__(self) -> str:
        return self.text


class RunSettings(DocumentPart):
    """How a run is carried out.

    Experiment files, options of `clientlab run` and plans share these fields.
    """

    # The number of rounds, or the fewest if a budget or a precision adds some.
    rounds: Annotated[int, Field(strict=True, ge=1, le=MOST_ROUNDS_OF_A_RUN)] = 3
    # Slices per trial. None: the lab chooses.
    slices: Annotated[int, Field(strict=True, ge=1, le=MOST_SLICES)] | None = None
    # Seconds for which rounds are added, unless all is decided before.
    budget: Annotated[Time, Field(gt=0)] | None = None
    # Rounds are added until intervals are as narrow as this share.
    precision: Annotated[Positive, ParsedBy(parse_share), Field(lt=1)] | None = None
    # The run searches the highest rate at which these conditions hold.
    find_max: Conditions | None = None
    # Of all random choices. None: a new one.
    seed: Annotated[int, Field(strict=True, ge=0, le=MOST_SEED)] | None = None
    pin: Switch = False  # give each part of the testbed its own CPUs
    explain: Switch = False  # after the rounds, look at each arm once more


class ExperimentParts(RunSettings):
    """What an experiment and its plan have in common."""

    name: str
    question: str
    source: Source | None = None
    # What the source did not control, or the experiment leaves out.
    uncontrolled: Names = []
    baseline: str | None = None  # the arm that the others are compared with
    # Of upstreams, as in the source.
    workers: dict[str, Annotated[int, Field(ge=1, le=MOST_WORKERS)]] = {}
    environments: dict[VersionName, EnvironmentSpec] = {}
    shortened: Names = []  # what the quick form changed


class Plan(ExperimentParts):
    """The experiment, expanded to its arms, as the run carries it out."""

    seed: int
    # With a precision: the seconds after which no round is added.
    time_budget: Positive | None = None
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

    # Those workloads that have credentials, with them. No file holds these.
    secret_workloads: Annotated[
        dict[str, Workload], Field(exclude=True, repr=False)
    ] = {}

    def measured_workload(self, name: str) -> Workload:
        """Return a workload as its requests are sent, with its credentials."""
        return self.secret_workloads.get(name) or self.workloads[name]

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
        """Return the arms that were left out, with what the machine lacks."""
        by_reason: dict[str, list[str]] = {}
        for arm in arms:
            if arm in self.unavailable_arms:
                by_reason.setdefault(self.unavailable_arms[arm], []).append(arm)
        return ", ".join(
            f"{', '.join(names)} ({reason})" for reason, names in by_reason.items()
        )

    def masked(self) -> Self:
        """Return the plan for files, with credentials in `secret_workloads` only.

        Headers, paths and the addresses of requirements may hold some.
        """
        workloads = {}
        secret = {}
        for name, workload in self.workloads.items():
            headers = mask_headers(workload.request.headers)
            path = mask_text(workload.request.path)
            workloads[name] = change(workload, headers=headers, path=path)
            if workloads[name] != workload:
                secret[name] = workload
        specs = {}
        for name, spec in self.environments.items():
            masked = list(map(mask_text, spec.requirements))
            specs[name] = spec.updated(requirements=masked)
        return self.updated(
            workloads=workloads, secret_workloads=secret, environments=specs
        )

    @property
    def links(self) -> list[Link]:
        """The different links of its arms."""
        return list(
            dict.fromkeys(arm.link for arm in self.arms if arm.link is not None)
        )


def suffix_of(place: Mapping[str, AxisValue]) -> str:
    """Return the end of a name for a point on axes: ``[concurrency=8, pool=2]``.

    Names are shown and stored, so they hide credentials, as in a path.
    """
    if not place:
        return ""
    settings = (
        f"{key}={mask_text(write_setting(value))}" for key, value in place.items()
    )
    return f"[{', '.join(settings)}]"


def number_on(axis: str, arm: Arm) -> float | None:
    """Return the value of an arm on an axis as a number, or None for a text.

    Links have seconds and bits per second.
    """
    value = arm.axes[axis]
    if arm.link is not None and axis in LINK_PARTS:
        value = getattr(arm.link, axis)
    return None if value is None or isinstance(value, str) else float(value)
