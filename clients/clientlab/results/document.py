"""The run document: what one execution of an experiment measured, its failed trials and its servers' ceilings.

`report`, `compare` and `claims` read nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from clientlab.bounded_numbers import Count, Estimated, NotNegative, Positive, Seconds, Whole
from clientlab.results.bottleneck import Bound
from clientlab.results.part import DocumentPart, MeasuredPart
from clientlab.results.plan import (
    AxisValue,
    Names,
    Plan,
    Texts,
    check_once,
    check_workloads,
    identity_of,
)
from clientlab.results.server_counters import ServerUse
from clientlab.results.target import Target
from clientlab.results.trial import PlannedTrial, Time, Trial


class Ceiling(MeasuredPart):
    """How many requests per second an upstream answered by a route, to the fastest load generator of the machine.

    It is measured once, before the first round, with the request of a workload without its delay.
    """

    upstream: str
    route: str
    arms: Annotated[list[str], Field(description="names of the arms that it is for")]
    http: Annotated[Literal["1.1", "2"], Field(description="version of HTTP of the arms that it is for")]
    generator: Annotated[
        str | None, Field(description="the program, or the strategy, that sent the requests; null: none did")
    ] = None
    version: Annotated[str | None, Field(description="of the program")] = None
    connections: Annotated[Count, Field(description="requests in flight, each on a connection of its own")]
    without_delay: Annotated[bool, Field(description="whether the workload has a delay, which was left out")]
    seconds: Seconds | None = None
    requests: Annotated[Count, Field(description="that succeeded")] = 0
    failed: Annotated[Count, Field(description="that got no response, or one with a status from 400 on")] = 0
    requests_per_second: Annotated[Positive | None, Field(description="successful ones; null: not measured")] = None
    generator_cpu_seconds: Seconds | None = None
    upstream_use: ServerUse | None = None
    proxy_use: ServerUse | None = None
    verdict: Annotated[
        Bound | None,
        Field(description="what limited the generator; client-bound: itself, so the server may do more; null: unknown"),
    ] = None
    reason: Annotated[str | None, Field(description="why the ceiling was not measured")] = None


def ceiling_of(trial: PlannedTrial, ceilings: Iterable[Ceiling]) -> Ceiling | None:
    """The ceiling that is for the arm of a trial; None where there is none."""
    return next((one for one in ceilings if trial.arm in one.arms), None)


FORMAT: Literal[1] = 1
"""The format of run files. A change that older files do not fit raises it, and needs a conversion in `store.run_of`."""


class ClaimResult(DocumentPart):
    """The verdict on a claim, from the rounds of a run."""

    name: str
    text: str
    source: str | None
    kind: str
    figure: str
    control: bool
    published: str | None
    verdict: Literal["supported", "contradicted", "inconclusive"]
    ratio: Annotated[
        Estimated | None,
        Field(
            description="b over a, of the figure or its spread; optimum: better end over the least; narrower: of ratios"
        ),
    ] = None
    interval: Annotated[tuple[Estimated, Estimated] | None, Field(description="95 %, from rounds")] = None
    band: tuple[Positive, Positive] | None = None
    best: Annotated[AxisValue | None, Field(description="value of the axis with the least figure")] = None
    knee: Annotated[
        AxisValue | None,
        Field(description="first value of the axis within 5 % of the least figure; None if it may be any value"),
    ] = None
    knee_between: Annotated[
        tuple[AxisValue, AxisValue] | None, Field(description="95 % interval of the knee: first and last value")
    ] = None
    rounds: Count
    measured: Annotated[str, Field(description="what was found, in a sentence")]
    settles: Annotated[str | None, Field(description="what would settle an inconclusive claim")] = None
    cautions: Annotated[Names, Field(description="kinds of the cautions about the claim's arms")] = []


class Environment(DocumentPart):
    """A Python with its packages, in which trials ran instead of in the lab's own."""

    folder: str
    python: str
    python_build: Annotated[str, Field(description="GIL, compiler, optimisation, PGO, LTO")]
    openssl: Annotated[str | None, Field(description="of Python's module ssl; null without the module")]
    packages: Annotated[Texts, Field(description="every installed distribution to its version")]
    compiled: Annotated[Texts, Field(description="libraries compiled into its packages, such as libcurl")]


class SystemLimits(DocumentPart):
    """Limits of the system that a run may reach; null: the system does not show it."""

    open_files: Annotated[Count, Field(description="of one process, so far as it may raise its own limit")]
    ephemeral_ports: Annotated[
        Count | None, Field(description="connections at once to one address: net.ipv4.ip_local_port_range")
    ] = None
    time_wait_reuse: Annotated[
        Count | None,
        Field(
            description="net.ipv4.tcp_tw_reuse: 1: a closed connection's port is free after 1 s; 2: on loopback only"
        ),
    ] = None
    listen_backlog: Annotated[
        Count | None, Field(description="connections that wait to be accepted, at most: net.core.somaxconn")
    ] = None
    free_memory_bytes: Annotated[Count | None, Field(description="of the machine and of its control groups")] = None


class Placement(DocumentPart):
    """The CPUs that each part of the testbed may use, as the kernel numbers them."""

    client: list[Count]
    upstream: list[Count]
    proxy: Annotated[list[Count], Field(description="empty: the run has no proxy")] = []

    def __str__(self) -> str:
        """In a phrase: ``client on CPU 1, upstream and proxy on CPU 0``."""
        parts: dict[str, list[str]] = {}
        for name, cpus in self:
            if cpus:
                parts.setdefault(", ".join(map(str, cpus)), []).append(name)
        return ", ".join(f"{' and '.join(names)} on CPU {cpus}" for cpus, names in parts.items())


class Surroundings(DocumentPart):
    """The machine and the software of a run."""

    host: str
    system: str
    kernel: str
    architecture: str
    cpu_model: str
    cpu_count: Count
    cpu_usable: Annotated[NotNegative, Field(description="by affinity and by the least quota of the control groups")]
    memory_bytes: Count
    memory_limit_bytes: Count | None
    open_files_limit: Annotated[Whole, Field(description="-1: none")]
    load_average: Annotated[NotNegative, Field(description="over the minute before the run")]
    python: str
    libraries: Texts
    programs: Annotated[Texts, Field(description="servers and their settings")]
    clock: Annotated[str, Field(description="implementation and resolution")]
    dependencies: Annotated[Texts, Field(description="versions of what the measured libraries require")]
    compiled: Annotated[Texts, Field(description="libraries compiled into the measured ones, such as libcurl")]
    openssl: Annotated[str | None, Field(description="of Python's module ssl")] = None
    python_build: Annotated[str | None, Field(description="GIL, compiler, optimisation, PGO, LTO")] = None
    cpu_governor: Annotated[str | None, Field(description="of the cores' frequency")] = None
    smt: Annotated[bool | None, Field(description="whether two threads share a core")] = None
    virtualization: Annotated[str | None, Field(description="virtual machine, container, or none")] = None
    lab_commit: Annotated[str | None, Field(description="of the lab's clone, and whether code was changed")] = None
    lab_tree: Annotated[str | None, Field(description="git's hash of that commit's files")] = None
    environments: Annotated[
        dict[str, Environment] | None,
        Field(description="by name; null: all trials ran in the lab's own Python"),
    ] = None
    placement: Annotated[Placement | None, Field(description="null: no part was pinned to CPUs")] = None
    limits: Annotated[SystemLimits | None, Field(description="null: unknown")] = None


class Caution(DocumentPart):
    """A reason to doubt a number, with advice."""

    kind: str
    text: str
    advice: str
    arms: Annotated[Names, Field(description="arms whose trials it doubts; empty: it is about the whole run")] = []
    figures: Annotated[Names, Field(description="keys of the figures that it doubts; empty: all of them")] = []


class Resumption(DocumentPart):
    """A run that had stopped went on."""

    at: Time
    trials: Annotated[Count, Field(description="those that the run had then")]
    differences: Annotated[Names, Field(description="how the surroundings differed from those of the beginning")]


def is_probe(trial: PlannedTrial) -> bool:
    """Whether the trial belongs to the search for a capacity: it counts in no table of the run."""
    return list_of(trial) == "probes"


def list_of(trial: PlannedTrial) -> Literal["probes", "trials", "overloads"]:
    """The list of a run that holds such a trial."""
    return "trials" if trial.search is None else _LISTS[trial.search.phase]


_LISTS: dict[str, Literal["probes", "trials", "overloads"]] = {
    "probe": "probes",
    "comparison": "trials",
    "overload": "overloads",
}


class _TrialIndex:
    """The trials of a run by arm. A copy of the run shares the index, and may have another list of trials."""

    def __init__(self) -> None:
        self._trials: list[Trial] = []
        self._by_arm: dict[str, list[Trial]] = {}

    def of(self, trials: list[Trial], arm: str) -> list[Trial]:
        """Those of an arm, in their order."""
        if trials is not self._trials:
            self._trials, self._by_arm = trials, {}
            for trial in trials:
                self._by_arm.setdefault(trial.arm, []).append(trial)
        return self._by_arm.get(arm, [])


class Run(DocumentPart):
    """One execution of an experiment."""

    format: Literal[1] = FORMAT
    run: Annotated[str, Field(description="the run's name, which is that of its folder")]
    clientlab: Annotated[str, Field(description="version")]
    created: Time
    status: Annotated[
        Literal["running", "interrupted", "done", "incomplete"],
        Field(description="interrupted: its process is gone; never in a file, which then has running"),
    ]
    experiment: Plan
    target: Annotated[Target | None, Field(description="what is measured; null: unknown, and the run cannot go on")] = (
        None
    )
    surroundings: Surroundings
    rounds_ended: Annotated[
        Literal["planned", "precision", "time-budget", "decided", "budget"] | None,
        Field(description="what ended the rounds"),
    ] = None
    decided: Annotated[
        dict[str, Count],
        Field(description="arm to the round after which all its comparisons were decided"),
    ] = {}
    resumed: Annotated[list[Resumption], Field(description="when the run went on after it had stopped")] = []
    ceilings: Annotated[
        list[Ceiling],
        Field(description="of each server, measured before the first round; empty without them"),
    ] = []
    cautions: list[Caution] = []
    claims: list[ClaimResult] = []
    probes: Annotated[
        list[Trial],
        Field(
            description="of a search for capacities: each trial has a rate that followed from those before it",
        ),
    ] = []
    overloads: Annotated[
        list[Trial],
        Field(description="behind a search: trials beyond each arm's capacity for a time"),
    ] = []
    trials: list[Trial] = []

    @property
    def every_trial(self) -> list[Trial]:
        """The trials, the probes and the overloads, not in the order in which they were measured."""
        return [*self.probes, *self.trials, *self.overloads]

    @cached_property
    def _index(self) -> _TrialIndex:
        return _TrialIndex()

    def trials_of(self, arm: str) -> list[Trial]:
        """The trials of an arm, in their order. Reports need them arm by arm, and must not read all trials for each."""
        return self._index.of(self.trials, arm)

    @property
    def measured(self) -> int:
        """Trials so far, of every kind: the place of the next one in the run."""
        return len(self.probes) + len(self.trials) + len(self.overloads)

    def with_trial(self, trial: Trial) -> Self:
        """The run with one more trial, in the list of its kind."""
        field = list_of(trial)
        return self.model_copy(update={field: [*getattr(self, field), trial]})

    @model_validator(mode="after")
    def _fits(self) -> Self:
        """Trials are of the experiment's arms, and each arm was done once in a round. Lists are of one kind."""
        every = self.every_trial
        check_once("trials", "order", (trial.order for trial in every))
        check_workloads("trial of", ((trial.arm, trial.workload) for trial in every), self.experiment.workloads)
        arms = {(arm.name, *identity_of(arm)) for arm in self.experiment.arms}
        searches = self.experiment.find_max is not None
        lists = {"probes": self.probes, "trials": self.trials, "overloads": self.overloads}
        for name, trials in lists.items():
            for trial in trials:
                if list_of(trial) != name or searches != (trial.search is not None):
                    raise ValueError(f"trial {trial.order}: it is no trial for {name!r} of this experiment")
        for trial in every:
            if (trial.arm, *identity_of(trial)) not in arms:
                raise ValueError(
                    f"trial {trial.order}: the experiment has no arm {trial.arm!r} of {identity_of(trial)}"
                )
        check_once("claims", "name", (claim.name for claim in self.claims))
        done = ((trial.arm, trial.round, *identity_of(trial)) for trial in self.trials if trial.status == "done")
        check_once("trials that are done", "arm and round", done)
        return self


def schema() -> dict[str, Any]:
    """Return the JSON Schema of run files."""
    found = Run.model_json_schema(mode="serialization")
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return dialect | found | {"required": ["format", *found["required"]]}


def failed_for_good(run: Run, arm: str | None = None) -> list[Trial]:
    """The failed and lost trials, of all arms or of one.

    A trial whose arm was measured again in the same round, with success, is not among them.
    """
    good = {(trial.arm, trial.round) for trial in run.trials if trial.status == "done"}
    return [
        trial
        for trial in run.trials
        if trial.status != "done" and arm in (None, trial.arm) and (trial.arm, trial.round) not in good
    ]
