"""The run document: what one execution of an experiment measured, and its failed trials.

`report`, `compare` and `claims` read nothing else.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from clientlab.bounded_numbers import Count, Estimated, NotNegative, Positive, Whole
from clientlab.results.part import DocumentPart
from clientlab.results.plan import (
    AxisValue,
    Names,
    Plan,
    Texts,
    check_once,
    check_workloads,
    identity_of,
)
from clientlab.results.target import Target
from clientlab.results.trial import PlannedTrial, Time, Trial

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
    open_files_limit: Annotated[
        Whole, Field(description="the hard limit, which each process raises its own to; -1: none")
    ]
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


def list_of(trial: PlannedTrial) -> Literal["probes", "trials"]:
    """The list of a run that holds such a trial."""
    return "trials" if trial.search_rate is None else "probes"


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
    cautions: list[Caution] = []
    claims: list[ClaimResult] = []
    probes: Annotated[
        list[Trial],
        Field(description="trials of a search for the highest rate, each at a rate that followed from the others"),
    ] = []
    trials: list[Trial] = []

    @property
    def every_trial(self) -> list[Trial]:
        """The probes and the trials, not in the order in which they were measured."""
        return [*self.probes, *self.trials]

    @cached_property
    def _index(self) -> _TrialIndex:
        return _TrialIndex()

    def trials_of(self, arm: str) -> list[Trial]:
        """The trials of an arm, in their order. Reports need them arm by arm, and must not read all trials for each."""
        return self._index.of(self.trials, arm)

    @property
    def measured(self) -> int:
        """Trials so far, of every kind: the place of the next one in the run."""
        return len(self.probes) + len(self.trials)

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
        if any(list_of(trial) != name for name in ("probes", "trials") for trial in getattr(self, name)):
            raise ValueError("probes have a search_rate, and trials have none")
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
