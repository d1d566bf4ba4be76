"""What a run measures next, how long that takes, and when its rounds are enough.

It follows from the run document alone, so a run that stopped goes on where it was.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from clientlab import strategies
from clientlab.analysis.precision import DECIDED_CONFIDENCE, SEQUENTIAL_CONFIDENCE, narrow, settled
from clientlab.judging import find_max
from clientlab.judging.claim_verdicts import finding_of
from clientlab.judging.contrasts import ClaimEvidence
from clientlab.judging.ranking import ranked
from clientlab.judging.undecided import undecided_arms
from clientlab.results.conditions import Conditions
from clientlab.results.document import Run
from clientlab.results.plan import Arm, Plan
from clientlab.results.trial import PlannedTrial
from clientlab.upstreams import UPSTREAMS
from clientlab.workload.link import Link
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
    """The trials to measure, in this order. `later`: about how many follow that are not known yet."""

    trials: Sequence[DueTrial]
    later: int = 0


def due_trials(run: Run, rounds: int | None = None) -> Due:
    """What is left to measure, of so many rounds.

    That are the trials of the schedule, and those to repeat. With a search for the highest rate, each of them comes
    behind the trials of its search, of which only the next one is known.
    """
    count = rounds or rounds_of(run)
    plan = run.experiment
    order = [
        (number, arm)
        for number, arm in schedule([arm.name for arm in plan.arms], count, plan.seed)
        if number <= run.decided.get(arm, count)
    ]
    lacking = _lacking(run, order)
    if plan.find_max is not None and lacking:
        return _next_of_search(run, lacking, plan.find_max)
    return Due([DueTrial(*one) for one in lacking])


def rounds_of(run: Run) -> int:
    """As many rounds as are planned, or as a run that goes on has begun; with a budget, each is decided anew."""
    planned = run.experiment.rounds if run.experiment.budget is None else 1
    return max([planned, *(trial.round for trial in run.trials)])


def schedule(arms: Sequence[str], rounds: int, seed: int) -> list[tuple[int, str]]:
    """(round, name of the arm) in the order of execution; rounds count from 1."""
    order: list[tuple[int, str]] = []
    for number in range(1, rounds + 1):
        shuffled = list(arms)
        random.Random(f"{seed}:{number}").shuffle(shuffled)  # noqa: S311 - an order, not a secret
        order += [(number, arm) for arm in shuffled]
    return order


def _lacking(run: Run, order: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """The entries of the order that the run lacks, and behind them those to repeat.

    A lost trial is repeated once. A run that was resumed repeats what was lost or failed before, as if it had not been.
    """
    since = run.resumed[-1].trials if run.resumed else 0
    trials = [((trial.round, trial.arm), trial) for trial in run.trials]
    known, present = {one for one, _ in trials}, [(one, trial) for one, trial in trials if trial.order >= since]
    tried = Counter(one for one, _ in present)
    done = {one for one, trial in trials if trial.status == "done"}
    lost = {one for one, trial in present if trial.status == "lost"}
    again = [one for one in order if one in known - done and tried[one] < (2 if one in lost else 1)]
    return [*(one for one in order if one not in known), *again]


def _next_of_search(run: Run, lacking: Sequence[tuple[int, str]], conditions: Conditions) -> Due:
    """The next trial of the first search that is not over; at its end, the trial that stands for it."""
    number, arm = lacking[0]
    found = find_max.search_of(run, arm, number, conditions)
    left = len(lacking) * find_max.USUAL_TRIALS - len(found.probes) - 1
    return Due([DueTrial(number, arm, found.next_rate)], max(len(lacking) - 1, left))


MOST_BY_TURNS = 512
"""Requests in flight of all trials that are measured by turns: each keeps its connections."""


def turn_of(run: Run, due: Iterable[DueTrial]) -> list[DueTrial]:
    """The first trial that is due, and those that are measured side by side with it: those that it is compared with.

    One alone, unless its trials are divided into slices.
    """
    first, *others = due
    if not _slices(run.experiment, first):
        return [first]
    arms = {arm.name: arm for arm in run.experiment.arms}
    group, found = _group(arms[first.arm]), [first]
    in_flight = _in_flight(arms[first.arm], run.experiment.workloads[arms[first.arm].workload])
    for one in others:
        arm = arms[one.arm]
        if one.round == first.round and _group(arm) == group and _slices(run.experiment, one):
            in_flight += _in_flight(arm, run.experiment.workloads[arm.workload])
            if in_flight > MOST_BY_TURNS:
                break
            found.append(one)
    return found


def _group(arm: Arm) -> tuple[str, str, Link | None]:
    """What arms have in common that are compared with each other, on one route or with another one."""
    return arm.workload, arm.upstream, arm.link


def _slices(plan: Plan, due: DueTrial) -> bool:
    return slices_of(plan, next(arm for arm in plan.arms if arm.name == due.arm)) > 1


_SLICE_SECONDS, _EXTERNAL_SLICE_SECONDS = 0.1, 0.5
"""Shortest slices: of an upstream of the lab, and of another server, of which nobody knows how long it takes."""

_WAVES = 10
"""A slice is at least so many times as long as a request waits: it lasts until the last one has ended."""

_USUAL_SLICES = 8
"""More make hardly any difference: docs/how-it-measures.md has the table."""


def slices_of(plan: Plan, arm: Arm) -> int:
    """Parts of a trial's measured time. What cannot wait for its turn is measured as a whole.

    That are a number of requests, a schedule, connections that are opened inside the clock, and external tools.
    """
    workload = plan.workloads[arm.workload]
    whole = workload.duration is None or is_open(workload) or not is_warm(workload) or workload.shards > 1
    if workload.duration is None or whole or strategies.client_spec(strategies.find(arm.strategy).client).program:
        return 1
    if plan.slices is not None:
        return plan.slices
    shortest = _SLICE_SECONDS if arm.upstream in UPSTREAMS else _EXTERNAL_SLICE_SECONDS
    waits = mean_delay(workload) + (0.0 if arm.link is None else arm.link.rtt)
    return max(1, min(_USUAL_SLICES, int(1e-9 + workload.duration / max(shortest, _WAVES * waits))))


def planned_trial(
    run: Run, due: DueTrial, order: int, whole: Plan | None = None, *, by_turns: bool = False
) -> tuple[PlannedTrial, Workload]:
    """The trial of the run that is due, and its workload. `whole`: the plan with the values that the run lacks.

    `by_turns`: trials may be measured side by side, so that they have slices.
    """
    arm = next(arm for arm in run.experiment.arms if arm.name == due.arm)
    workload = (whole or run.experiment).workloads[arm.workload]
    if due.search_rate is not None:
        workload = replace(workload, rate=due.search_rate)
    workload = in_round(workload, run.experiment.seed, due.round)
    trial = PlannedTrial(
        arm=arm.name,
        strategy=arm.strategy,
        upstream=arm.upstream,
        route=arm.route,
        workload=arm.workload,
        round=due.round,
        order=order,
        concurrency=_in_flight(arm, workload),
        environment=arm.environment,
        link=arm.link,
        search_rate=due.search_rate,
        slices=slices_of(run.experiment, arm) if by_turns else 1,
    )
    return trial, workload


RoundsEnded = Literal["planned", "precision", "time-budget", "decided", "budget"]

DEFAULT_TIME_BUDGET = 600.0
"""Seconds. A run on a busy machine has to end, too."""


@dataclass(frozen=True)
class Pace:
    """Seconds of all rounds so far, and of a trial in the last of them."""

    seconds: float
    of_trial: float


def ended(run: Run, rounds: int, pace: Pace) -> RoundsEnded | None:
    """What ends the run after so many rounds; None where another round is due.

    A round is not begun that would, at the pace of those before it, end beyond the budget of time.
    """
    settings = run.experiment
    if settings.budget is not None:
        left = len(settings.arms) - len(run.decided)
        if not left:
            return "decided"
        return "budget" if pace.seconds + left * pace.of_trial > settings.budget else None
    if rounds < settings.rounds:
        return None
    if settings.precision is None:
        return "planned"
    if precise(run, settings.precision):
        return "precision"
    return "time-budget" if pace.seconds * (rounds + 1) / rounds > time_budget_of(settings) else None


FIRST_LOOK = 4
"""Rounds before which no comparison counts as decided: fewer say little about how much arms vary."""


def with_decided(run: Run, rounds: int) -> Run:
    """The run of a budget after so many rounds, with the arms whose comparisons are all decided by now."""
    if run.experiment.budget is None or rounds < max(FIRST_LOOK, run.experiment.rounds):
        return run
    still = undecided_arms(run)
    new = {arm.name: rounds for arm in run.experiment.arms if arm.name not in still | run.decided.keys()}
    return run.model_copy(update={"decided": run.decided | new}) if new else run


def precise(run: Run, precision: float) -> bool:
    """Whether the interval of every ratio to its group's fastest is narrow, and every claim is settled."""
    rows = [row for group in ranked(run).values() for row in group if not row.fastest]
    evidence = ClaimEvidence(run)
    return all(narrow(row.ratio, precision) for row in rows if row.ratio) and all(
        settled(
            finding_of(evidence, claim, SEQUENTIAL_CONFIDENCE),
            finding_of(evidence, claim, DECIDED_CONFIDENCE),
            precision,
        )
        for claim in run.experiment.claims
    )


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
    planned = plan.rounds * round_seconds(plan)
    if plan.budget is not None:
        return _RUN_SECONDS + plan.budget
    return _RUN_SECONDS + (planned if plan.precision is None else max(planned, time_budget_of(plan)))


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
    return sum(trials * _trial(arm, plan.workloads[arm.workload]) for arm in plan.arms)


def most_in_flight(plan: Plan) -> int:
    """The largest number of requests that any trial has in flight at once."""
    return max(_in_flight(arm, plan.workloads[arm.workload]) for arm in plan.arms)


def _in_flight(arm: Arm, workload: Workload) -> int:
    """Equal in all rounds, also where each of them draws how many requests arrive."""
    return strategies.find(arm.strategy).in_flight(workload.concurrency, expected_requests(workload))


def _trial(arm: Arm, workload: Workload) -> float:
    in_flight = _in_flight(arm, workload)
    wait = mean_delay(workload) + (0.0 if arm.link is None else arm.link.rtt)
    warm_up = max(workload.warmup, in_flight) if is_warm(workload) else workload.warmup
    before = _TRIAL_SECONDS + in_flight * _CONNECTION_SECONDS + ceil(warm_up / in_flight) * wait
    if (schedule := expected_schedule(workload)) is not None:
        return before + schedule.length + wait
    if workload.requests is None:
        return before + (workload.duration or 0.0) + wait
    waves = max(1.0, workload.requests / in_flight)
    return before + max(waves * wait, workload.requests * _REQUEST_SECONDS)


def mean_delay(workload: Workload) -> float:
    """Mean seconds of delay that the requests of the workload ask for, estimated from the first hundred."""
    if workload.delay is None:
        return 0.0
    delay = workload.delay.at(workload.seed)
    return sum(delay(number) for number in range(_SAMPLE)) / _SAMPLE
