"""The schedule of a run: the trials that are due, its end, and how long it takes.

Everything follows from the run document, so a run that stopped goes on where it was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import ceil

from clientlab import strategies
from clientlab.judging import find_max
from clientlab.judging.judgement import ClaimEvidence, undecided_arms
from clientlab.judging.ranking import rank_arms
from clientlab.judging.steadiness import (
    LEAST_WAVES,
    find_least_duration,
    find_most_slices,
)
from clientlab.results.document import RoundsEnded, Run
from clientlab.results.plan import Arm, Plan
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.statistics.decisions import (
    DECIDED_CONFIDENCE,
    SEQUENTIAL_CONFIDENCE,
    is_narrow,
    is_settled,
)
from clientlab.workload.load import (
    count_warm_up,
    expected_requests,
    expected_schedule,
    is_steady,
)
from clientlab.workload.workload import (
    Workload,
    change,
    delay_of,
    reseed_for_round,
)

Due = tuple[int, str]
"""A trial that is left to measure: its round, from 1, and the name of its arm."""


def find_due(run: Run, rounds: int | None = None) -> list[Due]:
    """Return what is left to measure, in order.

    What was never measured comes before what has to be repeated. A lost trial is
    repeated once. After the run was resumed, every trial that had failed or was lost is
    repeated.
    """
    count = rounds or count_rounds(run)
    since = run.resumed[-1].trials if run.resumed else 0
    attempts = defaultdict[Due, list[Trial]](list)
    for trial in run.trials:
        attempts[trial.planned.round, trial.planned.arm].append(trial)

    def has_to_be_repeated(trials: Sequence[Trial]) -> bool:
        if any(trial.status == "done" for trial in trials):
            return False
        recent = [trial for trial in trials if trial.planned.order >= since]
        most = 2 if any(trial.status == "lost" for trial in recent) else 1
        return len(recent) < most

    new = []
    repeated = []
    for number, arm in run.experiment.schedule(count):
        if number > run.decided.get(arm, count):
            continue
        due = number, arm
        if due not in attempts:
            new.append(due)
        elif has_to_be_repeated(attempts[due]):
            repeated.append(due)
    return new + repeated


def count_rounds(run: Run) -> int:
    """Return how many rounds are planned or have begun.

    With a budget, each further round is decided on its own.
    """
    planned = run.experiment.rounds if run.experiment.budget is None else 1
    return max([planned, *(trial.planned.round for trial in run.trials)])


def plan_turn(
    run: Run,
    due: Sequence[Due],
    search_rate: float | None = None,
    *,
    by_turns: bool = False,
) -> list[tuple[PlannedTrial, Workload]]:
    """Return the next trial with its workload.

    If it is measured in slices, return the trials that it is compared with, too.

    `search_rate`: requests per second that a search for the highest rate tries.
    `by_turns`: whether trials can be measured side by side, in slices.
    """
    plan = run.experiment
    number, _ = due[0]
    planned = []
    for index, arm in enumerate(_choose_turn(run, due, by_turns=by_turns)):
        workload = plan.measured_workload(arm.workload)
        if search_rate is not None:
            workload = change(workload, rate=search_rate)
        workload = reseed_for_round(workload, plan.seed, number)
        trial = PlannedTrial(
            arm=arm.name,
            strategy=arm.strategy,
            upstream=arm.upstream,
            route=arm.route,
            workload=arm.workload,
            round=number,
            order=run.measured + index,
            concurrency=_count_in_flight(arm, workload),
            environment=arm.environment,
            server=arm.server,
            link=arm.link,
            search_rate=search_rate,
            slices=count_slices(run, arm) if by_turns else 1,
            least_waves=LEAST_WAVES if plan.slices is None else 0,
        )
        planned.append((trial, workload))
    return planned


def _choose_turn(run: Run, due: Sequence[Due], *, by_turns: bool) -> list[Arm]:
    """Return the arm that is due first, with those that share its slices."""
    plan = run.experiment
    arms = {arm.name: arm for arm in plan.arms}
    number, name = due[0]
    first = arms[name]
    if not by_turns or count_slices(run, first) == 1:
        return [first]
    turn: list[Arm] = []
    connections = 0
    for other_number, other_name in due:
        arm = arms[other_name]
        is_compared = (
            other_number == number
            and arm.shared_workload == first.shared_workload
            and arm.upstream == first.upstream
            and arm.link == first.link
        )
        if is_compared and count_slices(run, arm) > 1:
            # Each trial keeps its connections open.
            connections += _count_in_flight(arm, plan.workloads[arm.workload])
            if turn and connections > _MOST_OPEN:
                break
            turn.append(arm)
    return turn


# More make hardly any difference: docs/how-it-measures.md has the gain of eight.
_USUAL_SLICES = 8
_MOST_OPEN = 512  # connections of the trials that share their slices


def count_slices(run: Run, arm: Arm) -> int:
    """Return the most slices into which a trial's measured time is divided.

    Its own waves may permit fewer.

    A trial stays whole if it cannot pause: one with a number of requests, a schedule,
    shards, or connections that are opened while the clock runs. A slice lasts several
    times as long as the long requests of the rounds before, and long enough for a
    steady rate.
    """
    plan = run.experiment
    workload = plan.workloads[arm.workload]
    if not is_steady(workload) or workload.shards > 1:
        return 1
    if plan.slices is not None:
        return plan.slices
    before = run.finished_trials_of(arm.name)
    most = find_most_slices(before) or _USUAL_SLICES
    if not before:
        return most
    duration = workload.load.duration or 0.0
    fitting = int(duration / find_least_duration(before))
    return max(1, min(most, fitting))


DEFAULT_TIME_BUDGET = 600.0
"""Seconds. A run with a precision has to end on a busy machine, too."""


def find_first_look(plan: Plan) -> int:
    """Return the rounds after which a budget first asks what is decided.

    Fewer than four say little about how much arms vary.
    """
    return max(4, plan.rounds)


def decide_arms(run: Run, rounds: int) -> Run:
    """Return a run after a round, with the arms whose comparisons are all decided.

    Only a run with a budget decides arms. Return the run itself if no arm is new.
    """
    plan = run.experiment
    if plan.budget is None or rounds < find_first_look(plan):
        return run
    left = undecided_arms(run) | run.decided.keys()
    new = {arm.name: rounds for arm in plan.arms if arm.name not in left}
    return run.updated(decided=run.decided | new) if new else run


def find_end(
    run: Run, rounds: int, seconds: float, trial_seconds: float = 0.0
) -> RoundsEnded | None:
    """Return why the run ends after this many rounds, or None if another one is due.

    A round is due only if it will end within the budget. `seconds`: of all rounds.
    `trial_seconds`: mean of the trials of the last round.
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
    next_end = seconds * (rounds + 1) / rounds
    return "time-budget" if next_end > get_time_budget(plan) else None


def _is_precise(run: Run, precision: float) -> bool:
    """Return whether all ratios are narrow, and all claims settled."""
    for group in rank_arms(run).values():
        for row in group:
            if row.fastest or row.ratio is None:
                continue
            if not is_narrow(row.ratio, precision):
                return False
    find = ClaimEvidence(run).finding
    return all(
        is_settled(
            find(claim, SEQUENTIAL_CONFIDENCE),
            find(claim, DECIDED_CONFIDENCE),
            precision,
        )
        for claim in run.experiment.claims
    )


# Measured on two cores.
_RUN_SECONDS = 2.0  # starting the servers and writing the report
# Starting a trial's process, importing its library, and closing its connections.
_TRIAL_SECONDS = 0.4
# Opening a connection: with 300, threads warm up 1.0 s longer, and aiohttp 0.2 s.
_CONNECTION_SECONDS = 0.002
_REQUEST_SECONDS = 0.0007  # CPU time of a request on both sides


def estimate_seconds(plan: Plan, answer: float = 0.0) -> float:
    """Estimate the seconds of a whole run.

    If a budget or a precision decides how many rounds it has, that is the most.
    `answer`: seconds that a request to a server of the user took; 0 for the lab's own,
    whose delays are planned. Each bundled experiment took between half and twice as
    long. `reports.progress` estimates again after round 1.
    """
    if plan.budget is not None:
        return _RUN_SECONDS + plan.budget
    rounds_seconds = plan.rounds * estimate_round_seconds(plan, answer)
    if plan.precision is not None:
        rounds_seconds = max(rounds_seconds, get_time_budget(plan))
    return _RUN_SECONDS + rounds_seconds


def estimate_seconds_left(run: Run, answer: float = 0.0) -> float:
    """Estimate the seconds of a run that begins or goes on.

    A run that goes on has its whole budget again.
    """
    plan = run.experiment
    seconds = estimate_seconds(plan, answer)
    if plan.budget is not None or plan.precision is not None:
        return seconds
    planned = max(1, plan.rounds * len(plan.arms))
    return seconds * max(0.0, 1 - len(run.trials) / planned)


def get_time_budget(plan: Plan) -> float:
    """Return the seconds after which a run with a precision begins no further round."""
    return DEFAULT_TIME_BUDGET if plan.time_budget is None else plan.time_budget


def estimate_round_seconds(plan: Plan, answer: float = 0.0) -> float:
    """Estimate the seconds of one round.

    Each search for the highest rate has several trials.
    """
    trials = 1 if plan.find_max is None else find_max.USUAL_TRIALS
    return trials * sum(
        _estimate_trial_seconds(arm, plan.workloads[arm.workload], answer)
        for arm in plan.arms
    )


def _estimate_trial_seconds(arm: Arm, workload: Workload, answer: float) -> float:
    in_flight = _count_in_flight(arm, workload)
    # For the upstream's delay and the link.
    wait = answer + estimate_mean_delay(workload)
    if arm.link is not None:
        wait += arm.link.rtt
    warm_up = count_warm_up(workload, in_flight) or workload.load.warmup
    warm_up_waits = ceil(warm_up / in_flight) * wait
    before = _TRIAL_SECONDS + in_flight * _CONNECTION_SECONDS
    before += max(warm_up_waits, warm_up * _REQUEST_SECONDS)
    schedule = expected_schedule(workload)
    if schedule is not None:
        return before + schedule.length + wait
    requests = workload.load.requests
    if requests is None:
        return before + (workload.load.duration or 0.0) + wait
    waves = max(1.0, requests / in_flight)
    return before + max(waves * wait, requests * _REQUEST_SECONDS)


def find_most_in_flight(plan: Plan) -> int:
    """Return the largest number of requests that any trial has in flight at once."""
    return max(_count_in_flight(arm, plan.workloads[arm.workload]) for arm in plan.arms)


def _count_in_flight(arm: Arm, workload: Workload) -> int:
    """Return the requests in flight, which are the same in all rounds.

    Each round may draw how many requests arrive.
    """
    strategy = strategies.find(arm.strategy)
    return strategy.in_flight(workload.load.concurrency, expected_requests(workload))


def estimate_mean_delay(workload: Workload) -> float:
    """Estimate the mean delay in seconds that requests ask for.

    It is that of the first hundred.
    """
    delay = delay_of(workload)
    if delay is None:
        return 0.0
    return sum(map(delay, range(100))) / 100
