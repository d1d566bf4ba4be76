"""What a run measures next, how long that takes, and when its rounds are enough.

It follows from the run document alone, so a run that stopped goes on where it was.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from clientlab import strategies
from clientlab.analysis.decisions import DECIDED_CONFIDENCE, SEQUENTIAL_CONFIDENCE, narrow, settled
from clientlab.judging import find_max
from clientlab.judging.claim_verdicts import ClaimEvidence
from clientlab.judging.ranking import ranked
from clientlab.judging.undecided import undecided_arms
from clientlab.results.document import RoundsEnded, Run
from clientlab.results.plan import Arm, Plan
from clientlab.results.trial import PlannedTrial
from clientlab.upstreams import UPSTREAMS
from clientlab.workload.load import expected_requests, expected_schedule, is_open, is_warm
from clientlab.workload.seeds import in_round
from clientlab.workload.workload import Workload


@dataclass(frozen=True)
class DueTrial:
    """A trial to measure. `arm`: its name. `search_rate`: the rate that a search tries, in requests per second."""

    round: int
    arm: str
    search_rate: float | None = None


@dataclass(frozen=True)
class Due:
    """The trials to measure, in this order."""

    trials: Sequence[DueTrial]
    later: int = 0  # about how many follow that are not known yet


def due_trials(run: Run, rounds: int | None = None) -> Due:
    """Return what is left to measure: the trials of the schedule that the run lacks, and then those to repeat.

    A lost trial is repeated once. A run that was resumed repeats what was lost or failed before, as if it had not been.
    A search for the highest rate precedes each trial; only its next trial is known.
    """
    plan, count = run.experiment, rounds or rounds_of(run)
    order = [
        (number, arm)
        for number, arm in schedule([arm.name for arm in plan.arms], count, plan.seed)
        if number <= run.decided.get(arm, count)
    ]
    since = run.resumed[-1].trials if run.resumed else 0
    present = [trial for trial in run.trials if trial.order >= since]
    known = {(trial.round, trial.arm) for trial in run.trials}
    unfinished = known - {(trial.round, trial.arm) for trial in run.trials if trial.status == "done"}
    tried = Counter((trial.round, trial.arm) for trial in present)
    lost = {(trial.round, trial.arm) for trial in present if trial.status == "lost"}
    lacking = [one for one in order if one not in known]
    lacking += [one for one in order if one in unfinished and tried[one] < (2 if one in lost else 1)]
    if plan.find_max is None or not lacking:
        return Due([DueTrial(*one) for one in lacking])
    number, arm = lacking[0]
    found = find_max.search_of(run, arm, number, plan.find_max)
    left = len(lacking) * find_max.USUAL_TRIALS - len(found.probes) - 1
    return Due([DueTrial(number, arm, found.next_rate)], max(len(lacking) - 1, left))


def rounds_of(run: Run) -> int:
    """Return how many rounds are planned, or begun by a run that goes on; with a budget, each is decided anew."""
    planned = run.experiment.rounds if run.experiment.budget is None else 1
    return max([planned, *(trial.round for trial in run.trials)])


def schedule(arms: Sequence[str], rounds: int, seed: int) -> list[tuple[int, str]]:
    """Return (round, name of the arm) in the order of execution; rounds count from 1."""
    order: list[tuple[int, str]] = []
    for number in range(1, rounds + 1):
        shuffled = list(arms)
        random.Random(f"{seed}:{number}").shuffle(shuffled)  # noqa: S311 - an order, not a secret
        order += [(number, arm) for arm in shuffled]
    return order


_MOST_BY_TURNS = 512
"""Requests in flight of all trials that are measured by turns: each keeps its connections."""


def turn_of(run: Run, due: Sequence[DueTrial]) -> list[DueTrial]:
    """Return the first trial that is due, and those of its round that it is compared with, if they have slices."""
    plan, arms, first = run.experiment, {arm.name: arm for arm in run.experiment.arms}, due[0]
    compared = arms[first.arm].workload, arms[first.arm].upstream, arms[first.arm].link
    if slices_of(plan, arms[first.arm]) == 1:
        return [first]
    found, flying = list[DueTrial](), 0
    for one in due:
        arm = arms[one.arm]
        if one.round == first.round and (arm.workload, arm.upstream, arm.link) == compared and slices_of(plan, arm) > 1:
            flying += _in_flight(arm, plan.workloads[arm.workload])
            if found and flying > _MOST_BY_TURNS:
                break
            found.append(one)
    return found


_SLICE_SECONDS, _EXTERNAL_SLICE_SECONDS = 0.1, 0.5
"""Shortest slices: of an upstream of the lab, and of another server, of which nobody knows how long it takes."""

_WAVES = 10
"""A slice is at least so many times as long as a request waits: it lasts until the last one has ended."""

_USUAL_SLICES = 8
"""More make hardly any difference: docs/how-it-measures.md has the table."""


def slices_of(plan: Plan, arm: Arm) -> int:
    """Return the number of parts of a trial's measured time.

    It is 1 for what cannot wait for its turn: a number of requests, a schedule, shards, connections that are opened
    inside the clock, and external tools.
    """
    workload = plan.workloads[arm.workload]
    whole = is_open(workload) or not is_warm(workload) or workload.shards > 1
    if workload.duration is None or whole or strategies.client_spec(strategies.find(arm.strategy).client).program:
        return 1
    if plan.slices is not None:
        return plan.slices
    shortest = _SLICE_SECONDS if arm.upstream in UPSTREAMS else _EXTERNAL_SLICE_SECONDS
    return max(1, min(_USUAL_SLICES, int(1e-9 + workload.duration / max(shortest, _WAVES * _wait(arm, workload)))))


def planned_trial(
    run: Run, due: DueTrial, order: int, whole: Plan | None = None, *, by_turns: bool = False
) -> tuple[PlannedTrial, Workload]:
    """Return the trial that is due, and its workload. `whole`: the plan with the values that the run lacks."""
    arm = next(arm for arm in run.experiment.arms if arm.name == due.arm)
    workload = (whole or run.experiment).workloads[arm.workload]
    if due.search_rate is not None:
        workload = replace(workload, rate=due.search_rate)
    workload = in_round(workload, run.experiment.seed, due.round)
    of_arm = {name: getattr(arm, name) for name in PlannedTrial.model_fields if name in Arm.model_fields}
    trial = PlannedTrial(
        **of_arm,
        arm=arm.name,
        round=due.round,
        order=order,
        concurrency=_in_flight(arm, workload),
        search_rate=due.search_rate,
        slices=slices_of(run.experiment, arm) if by_turns else 1,
    )
    return trial, workload


DEFAULT_TIME_BUDGET = 600.0
"""Seconds. A run on a busy machine has to end, too."""

FIRST_LOOK = 4
"""Rounds before which no comparison counts as decided: fewer say little about how much arms vary."""


def ended(run: Run, rounds: int, seconds: float, trial_seconds: float = 0.0) -> RoundsEnded | None:
    """Return what ends the run after so many rounds, which took so many seconds, or None if another round is due.

    No round begins that would end beyond the budget of time. `trial_seconds`: of a trial in the last round.
    """
    plan = run.experiment
    if plan.budget is not None:
        left = len(plan.arms) - len(run.decided)
        if not left:
            return "decided"
        return "budget" if seconds + left * trial_seconds > plan.budget else None
    if rounds < plan.rounds:
        return None
    if plan.precision is None:
        return "planned"
    if _is_precise(run, plan.precision):
        return "precision"
    return "time-budget" if seconds * (rounds + 1) / rounds > time_budget_of(plan) else None


def with_decided(run: Run, rounds: int) -> Run:
    """Return the run of a budget after so many rounds, with the arms whose comparisons are all decided by now."""
    if run.experiment.budget is None or rounds < max(FIRST_LOOK, run.experiment.rounds):
        return run
    still = undecided_arms(run)
    new = {arm.name: rounds for arm in run.experiment.arms if arm.name not in still | run.decided.keys()}
    return run.model_copy(update={"decided": run.decided | new}) if new else run


def _is_precise(run: Run, precision: float) -> bool:
    """Tell whether the interval of every ratio to its group's fastest is narrow, and every claim is settled."""
    ratios = [row.ratio for group in ranked(run).values() for row in group if not row.fastest and row.ratio]
    if not all(narrow(ratio, precision) for ratio in ratios):
        return False
    evidence = ClaimEvidence(run)
    for claim in run.experiment.claims:
        sequential, decided = (evidence.finding(claim, one) for one in (SEQUENTIAL_CONFIDENCE, DECIDED_CONFIDENCE))
        if not settled(sequential, decided, precision):
            return False
    return True


_RUN_SECONDS = 2.0
"""Starting the servers and writing the report. This and the next three are measured on two cores."""

_TRIAL_SECONDS = 0.4
"""Starting a trial's process, importing its library, and closing its connections."""

_CONNECTION_SECONDS = 0.002
"""Opening one connection. With 300, threads take 1.0 s longer to warm up, and aiohttp 0.2 s."""

_REQUEST_SECONDS = 0.0007
"""Work for one request on both sides, on one core."""

_SAMPLE = 100


def seconds_of(plan: Plan) -> float:
    """Return the estimated seconds of a whole run: at most, if a budget or a precision decides how many rounds it has.

    Each bundled experiment took between half and twice as long. `reports.progress` estimates again after round 1.
    """
    if plan.budget is not None:
        return _RUN_SECONDS + plan.budget
    return _RUN_SECONDS + max(
        plan.rounds * round_seconds(plan), 0.0 if plan.precision is None else time_budget_of(plan)
    )


def seconds_left(run: Run) -> float:
    """Return the estimated seconds of a run that begins or goes on. A budget begins anew when a run goes on."""
    plan = run.experiment
    if plan.budget is not None or plan.precision is not None:
        return seconds_of(plan)
    return seconds_of(plan) * max(0.0, 1 - len(run.trials) / max(1, plan.rounds * len(plan.arms)))


def time_budget_of(plan: Plan) -> float:
    """Return the seconds after which a run with a precision begins no further round."""
    return DEFAULT_TIME_BUDGET if plan.time_budget is None else plan.time_budget


def round_seconds(plan: Plan) -> float:
    """Return the estimated seconds of one round, with all trials of a search for the highest rate."""
    trials = 1 if plan.find_max is None else find_max.USUAL_TRIALS
    return sum(trials * _trial_seconds(arm, plan.workloads[arm.workload]) for arm in plan.arms)


def most_in_flight(plan: Plan) -> int:
    """Return the largest number of requests that any trial has in flight at once."""
    return max(_in_flight(arm, plan.workloads[arm.workload]) for arm in plan.arms)


def _in_flight(arm: Arm, workload: Workload) -> int:
    """Return the requests in flight, which are equal in all rounds, also if each draws how many requests arrive."""
    return strategies.find(arm.strategy).in_flight(workload.concurrency, expected_requests(workload))


def _wait(arm: Arm, workload: Workload) -> float:
    """Return the mean seconds that a request waits for the upstream's delay and the link."""
    return mean_delay(workload) + (0.0 if arm.link is None else arm.link.rtt)


def _trial_seconds(arm: Arm, workload: Workload) -> float:
    in_flight, wait = _in_flight(arm, workload), _wait(arm, workload)
    warm_up = max(workload.warmup, in_flight) if is_warm(workload) else workload.warmup
    before = _TRIAL_SECONDS + in_flight * _CONNECTION_SECONDS + ceil(warm_up / in_flight) * wait
    if (schedule := expected_schedule(workload)) is not None:
        return before + schedule.length + wait
    if workload.requests is None:
        return before + (workload.duration or 0.0) + wait
    waves = max(1.0, workload.requests / in_flight)
    return before + max(waves * wait, workload.requests * _REQUEST_SECONDS)


def mean_delay(workload: Workload) -> float:
    """Return the mean seconds of delay that requests ask for, estimated from the first hundred."""
    if workload.delay is None:
        return 0.0
    delay = workload.delay.at(workload.seed)
    return sum(delay(number) for number in range(_SAMPLE)) / _SAMPLE
