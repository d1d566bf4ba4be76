"""The run document: what an experiment planned, measured, and judged from that.

`report`, `compare` and `claims` read nothing else.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal, Self

from pydantic import NonNegativeFloat as NotNegative
from pydantic import NonNegativeInt as Count
from pydantic import PositiveFloat as Positive
from pydantic import model_validator

from clientlab.results.explanation import Explanation
from clientlab.results.plan import AxisValue, Names, Plan, Target, Texts
from clientlab.results.trial import Placement, Time, Trial
from clientlab.validation import DocumentPart

FORMAT: Literal[2] = 2
"""The format of run files.

Raise it with a change that older files do not fit, and convert those in `read_run`.
"""

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
    # Of b to a, in the figure or in its spread. For an optimum: of the better end to
    # the least. For "narrower": of two ratios.
    ratio: NotNegative | None = None
    interval: tuple[NotNegative, NotNegative] | None = None  # 95 %, from rounds
    band: tuple[Positive, Positive] | None = None
    best: AxisValue | None = None  # the value of the axis with the least figure
    # The first value within 5 % of the least figure. None: it may be any value.
    knee: AxisValue | None = None
    # The first and the last value that may be the knee (95 %).
    knee_between: tuple[AxisValue, AxisValue] | None = None
    rounds: Count
    measured: str  # what was found, in a sentence
    settles: str | None = None  # what would settle an inconclusive claim
    cautions: Names = []  # kinds of the cautions about the claim's arms


class Environment(DocumentPart):
    """A Python with its packages, in which trials ran instead of the lab's own."""

    folder: str
    python: str
    python_build: str  # GIL, compiler, optimisation, PGO, LTO
    openssl: str | None  # of Python's module ssl; None without the module
    packages: Texts  # all installed distributions with their versions
    compiled: Texts  # libraries compiled into packages, like libcurl


class Surroundings(DocumentPart):
    """The machine and the software of a run."""

    host: str
    system: str
    kernel: str
    architecture: str
    cpu_model: str
    cpu_count: Count
    cpu_usable: NotNegative  # by affinity and by the quotas of the control groups
    memory_bytes: Count
    memory_limit_bytes: Count | None
    # The hard limit, to which each process raises its own. -1: no limit.
    open_files_limit: int
    load_average: NotNegative  # in the minute before the run
    python: str
    libraries: Texts
    programs: Texts  # servers with their settings, and external clients
    clock: str  # implementation and resolution
    dependencies: Texts  # what the measured libraries require
    compiled: Texts  # libraries compiled into the measured ones, like libcurl
    openssl: str | None = None  # of Python's module ssl
    python_build: str | None = None  # GIL, compiler, optimisation, PGO, LTO
    cpu_governor: str | None = None  # of the cores' frequency
    smt: bool | None = None  # whether two threads share a core
    virtualization: str | None = None  # virtual machine, container, or none
    lab_commit: str | None = None  # of its clone, and whether its code was changed
    # By name. None: all trials ran in the lab's own Python.
    environments: dict[str, Environment] | None = None
    placement: Placement | None = None  # None: nothing was pinned to CPUs


class Caution(DocumentPart):
    """A reason to doubt a number, with advice."""

    kind: str
    text: str
    advice: str
    arms: Names = []  # the arms in doubt; empty: it is about the whole run
    figures: Names = []  # keys of the figures in doubt; empty: all


class Resumption(DocumentPart):
    """The moment at which a run that had stopped went on."""

    at: Time
    trials: Count  # that the run already had
    differences: Names  # between the surroundings then and at the beginning


class Run(DocumentPart):
    """One execution of an experiment."""

    format: Literal[2] = FORMAT
    run: str  # the run's name, which is that of its folder
    clientlab: str  # version
    created: Time
    # An interrupted run is one that its file calls running, but whose process is gone.
    status: Literal["running", "interrupted", "done", "incomplete"]
    experiment: Plan
    # What is measured. None: unknown, so the run cannot be resumed.
    target: Target | None = None
    surroundings: Surroundings
    rounds_ended: RoundsEnded | None = None  # why there were no further rounds
    # Arms with the round after which all their comparisons were decided.
    decided: dict[str, Count] = {}
    resumed: list[Resumption] = []
    cautions: list[Caution] = []
    claims: list[ClaimResult] = []
    # Trials of searches for the highest rate. The results so far chose each rate.
    probes: list[Trial] = []
    trials: list[Trial] = []
    explained: list[Explanation] = []  # why each arm is slow, if that was asked for

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        arms = {(arm.name, arm.workload) for arm in self.experiment.arms}
        for name, workload in arms:
            if workload not in self.experiment.workloads:
                raise ValueError(
                    f"arm {name!r} names workload {workload!r}, which the experiment"
                    " does not have"
                )
        for planned in (trial.planned for trial in self.every_trial):
            if (planned.arm, planned.workload) not in arms:
                raise ValueError(
                    f"trial {planned.order} names arm {planned.arm!r}, which the"
                    " experiment does not have"
                )
        return self

    @property
    def every_trial(self) -> list[Trial]:
        """The probes and then the trials. They were measured in another order."""
        return [*self.probes, *self.trials]

    @cached_property
    def _index(self) -> list[tuple[list[Trial], dict[str, list[Trial]]]]:
        """At most one item: a list of trials, and the same trials by arm.

        Copies of the run share it, even those with other trials.
        """
        return []

    def trials_of(self, arm: str) -> list[Trial]:
        """Return the trials of an arm, in their order.

        The index makes this fast for runs with many arms.
        """
        if not self._index or self._index[0][0] is not self.trials:
            by_arm: dict[str, list[Trial]] = {}
            for trial in self.trials:
                by_arm.setdefault(trial.planned.arm, []).append(trial)
            self._index[:] = [(self.trials, by_arm)]
        return self._index[0][1].get(arm, [])

    def finished_trials_of(self, arm: str) -> list[Trial]:
        """Return the finished trials of an arm, in their order."""
        return [trial for trial in self.trials_of(arm) if trial.status == "done"]

    @property
    def rounds(self) -> int:
        """The planned number of rounds, or fewer if the budget was over before."""
        planned = self.experiment.rounds
        if self.rounds_ended != "budget":
            return planned
        begun = max((trial.planned.round for trial in self.trials), default=0)
        return min(planned, begun)

    @property
    def measured(self) -> int:
        """The number of trials and probes so far: the next one's place in the run."""
        return len(self.probes) + len(self.trials)

    def with_trial(self, trial: Trial) -> Self:
        """Return the run with one more trial or probe."""
        field = "trials" if trial.planned.search_rate is None else "probes"
        return self.updated(**{field: [*getattr(self, field), trial]})


def failed_for_good(run: Run, arm: str | None = None) -> list[Trial]:
    """Return the failed and lost trials that were not measured again with success.

    `arm`: only its trials; None for those of all arms.
    """
    trials = run.trials if arm is None else run.trials_of(arm)
    failed = []
    done = set()
    for trial in trials:
        if trial.status == "done":
            done.add((trial.planned.arm, trial.planned.round))
        else:
            failed.append(trial)
    return [
        trial
        for trial in failed
        if (trial.planned.arm, trial.planned.round) not in done
    ]
