"""The run document: what one execution of an experiment measured, and its failed trials.

`report`, `compare` and `claims` read nothing else.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal, Self

from pydantic import NonNegativeFloat as NotNegative
from pydantic import NonNegativeInt as Count
from pydantic import PositiveFloat as Positive
from pydantic import model_validator

from clientlab.results.plan import AxisValue, Names, Plan, Texts
from clientlab.results.target import Target
from clientlab.results.trial import PlannedTrial, Time, Trial
from clientlab.validation import DocumentPart

FORMAT: Literal[1] = 1
"""The format of run files. A change that older files do not fit raises it, and converts them in `store.read_run`."""


RoundsEnded = Literal["planned", "precision", "time-budget", "decided", "budget"]


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
    # b over a, of the figure or its spread; optimum: better end over the least; narrower: of ratios
    ratio: NotNegative | None = None
    interval: tuple[NotNegative, NotNegative] | None = None  # 95 %, from rounds
    band: tuple[Positive, Positive] | None = None
    best: AxisValue | None = None  # value of the axis with the least figure
    knee: AxisValue | None = None  # first value of the axis within 5 % of the least figure; None if it may be any value
    knee_between: tuple[AxisValue, AxisValue] | None = None  # 95 % interval of the knee: first and last value
    rounds: Count
    measured: str  # what was found, in a sentence
    settles: str | None = None  # what would settle an inconclusive claim
    cautions: Names = []  # kinds of the cautions about the claim's arms


class Environment(DocumentPart):
    """A Python with its packages, in which trials ran instead of in the lab's own."""

    folder: str
    python: str
    python_build: str  # GIL, compiler, optimisation, PGO, LTO
    openssl: str | None  # of Python's module ssl; None without the module
    packages: Texts  # every installed distribution to its version
    compiled: Texts  # libraries compiled into its packages, such as libcurl


class Placement(DocumentPart):
    """The CPUs that each part of the testbed may use, as the kernel numbers them."""

    client: list[Count]
    upstream: list[Count]
    proxy: list[Count] = []  # empty: the run has no proxy

    def __str__(self) -> str:
        """Return a phrase: ``client on CPU 1, upstream and proxy on CPU 0``."""
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
    cpu_usable: NotNegative  # by affinity and by the least quota of the control groups
    memory_bytes: Count
    memory_limit_bytes: Count | None
    open_files_limit: int  # the hard limit, which each process raises its own to; -1: none
    load_average: NotNegative  # over the minute before the run
    python: str
    libraries: Texts
    programs: Texts  # servers and their settings
    clock: str  # implementation and resolution
    dependencies: Texts  # versions of what the measured libraries require
    compiled: Texts  # libraries compiled into the measured ones, such as libcurl
    openssl: str | None = None  # of Python's module ssl
    python_build: str | None = None  # GIL, compiler, optimisation, PGO, LTO
    cpu_governor: str | None = None  # of the cores' frequency
    smt: bool | None = None  # whether two threads share a core
    virtualization: str | None = None  # virtual machine, container, or none
    lab_commit: str | None = None  # of the lab's clone, and whether code was changed
    environments: dict[str, Environment] | None = None  # by name; None: all trials ran in the lab's own Python
    placement: Placement | None = None  # None: no part was pinned to CPUs


class Caution(DocumentPart):
    """A reason to doubt a number, with advice."""

    kind: str
    text: str
    advice: str
    arms: Names = []  # arms whose trials it doubts; empty: it is about the whole run
    figures: Names = []  # keys of the figures that it doubts; empty: all of them


class Resumption(DocumentPart):
    """A run that had stopped went on."""

    at: Time
    trials: Count  # those that the run had then
    differences: Names  # how the surroundings differed from those of the beginning


def list_of(trial: PlannedTrial) -> Literal["probes", "trials"]:
    """Return the list of a run that holds such a trial."""
    return "trials" if trial.search_rate is None else "probes"


class Run(DocumentPart):
    """One execution of an experiment."""

    format: Literal[1] = FORMAT
    run: str  # the run's name, which is that of its folder
    clientlab: str  # version
    created: Time
    # interrupted: its process is gone; never in a file, which then has running
    status: Literal["running", "interrupted", "done", "incomplete"]
    experiment: Plan
    target: Target | None = None  # what is measured; None: unknown, and the run cannot go on
    surroundings: Surroundings
    # what ended the rounds
    rounds_ended: RoundsEnded | None = None
    decided: dict[str, Count] = {}  # arm to the round after which all its comparisons were decided
    resumed: list[Resumption] = []  # when the run went on after it had stopped
    cautions: list[Caution] = []
    claims: list[ClaimResult] = []
    probes: list[Trial] = []  # trials of a search for the highest rate, each at a rate that followed from the others
    trials: list[Trial] = []

    @model_validator(mode="after")
    def _names_what_it_has(self) -> Self:
        """Raise ValueError if a trial names an arm, or an arm a workload, that the experiment does not have."""
        arms = {(arm.name, arm.workload) for arm in self.experiment.arms}
        if lost := next((name for name, workload in arms if workload not in self.experiment.workloads), None):
            raise ValueError(f"arm {lost!r} names a workload that the experiment does not have")
        if stray := next((trial for trial in self.every_trial if (trial.arm, trial.workload) not in arms), None):
            raise ValueError(f"trial {stray.order} names an arm that the experiment does not have, {stray.arm!r}")
        return self

    @property
    def every_trial(self) -> list[Trial]:
        """The probes and the trials, not in the order in which they were measured."""
        return [*self.probes, *self.trials]

    @cached_property
    def _index(self) -> list[tuple[list[Trial], dict[str, list[Trial]]]]:
        """At most one list of trials, and the same by arm. A copy of the run shares it, and may have other trials."""
        return []

    def trials_of(self, arm: str) -> list[Trial]:
        """Return the trials of an arm, in their order. Reports need them arm by arm, without reading all for each."""
        if not self._index or self._index[0][0] is not self.trials:
            by_arm: dict[str, list[Trial]] = {}
            for trial in self.trials:
                by_arm.setdefault(trial.arm, []).append(trial)
            self._index[:] = [(self.trials, by_arm)]
        return self._index[0][1].get(arm, [])

    @property
    def measured(self) -> int:
        """Trials so far, of every kind: the place of the next one in the run."""
        return len(self.probes) + len(self.trials)

    def with_trial(self, trial: Trial) -> Self:
        """Return the run with one more trial, in the list of its kind."""
        field = list_of(trial)
        return self.model_copy(update={field: [*getattr(self, field), trial]})


def failed_for_good(run: Run, arm: str | None = None) -> list[Trial]:
    """Return the failed and lost trials, of all arms or of one, unless their arm succeeded later in the same round."""
    good = {(trial.arm, trial.round) for trial in run.trials if trial.status == "done"}
    return [
        trial
        for trial in run.trials
        if trial.status != "done" and arm in (None, trial.arm) and (trial.arm, trial.round) not in good
    ]
