"""Cautions: reasons to doubt the numbers of a run, each with advice.

Reports show them above the numbers.

A rule looks at an arm, or at the whole run, and returns a message if it applies.
Everything else that its cautions say is declared once, in the decorator. The first line
of a rule's docstring says what the caution means for the reader's decision; `clientlab
list cautions` prints it. All messages of one rule make one caution.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import median, mode

import numpy as np

from clientlab import strategies, units
from clientlab.analysis.bottleneck import SHORT_SECONDS, describe_growth
from clientlab.errors import LabError
from clientlab.judging.ranking import arm_key, rank_arms
from clientlab.judging.steadiness import find_unsteadiness
from clientlab.results.document import Caution, Run, failed_for_good
from clientlab.results.figures import (
    BY_KEY,
    FIGURES,
    attempts_per_call,
    cost_of,
    ranked_by,
)
from clientlab.results.surroundings import is_free_threaded
from clientlab.results.trial import Bound, Trial
from clientlab.statistics.decisions import decide
from clientlab.statistics.drift import FEWEST_PARTS, Drift, find_drift
from clientlab.statistics.histogram import QUANTILES
from clientlab.statistics.ratios import FEWEST_ROUNDS
from clientlab.text import first_paragraph
from clientlab.workload.load import is_warm

_MOST_WRITE_ERROR = 1e-3
"""Seconds by which an upstream may write an event late, at p99."""


@dataclass(frozen=True)
class Scope:
    """What a rule looks at: an arm, or the whole run if `arm` is empty."""

    run: Run
    arm: str = ""

    trials: Sequence[Trial] = ()
    """The finished trials of the arm."""

    slower_than: Sequence[Trial] = ()
    """Those of the arm that it is compared with, if it is found to be slower."""

    @property
    def bottleneck(self) -> Bound | None:
        return commonest_verdict(self.trials)

    def at_least_half(self, holds: Callable[[Trial], bool]) -> list[Trial]:
        """Return the trials for which `holds` is true if they are at least half.

        Fewer do not move the median.
        """
        holding = [trial for trial in self.trials if holds(trial)]
        return holding if 2 * len(holding) >= len(self.trials) else []


Check = Callable[[Scope], str | None]


@dataclass
class Rule:
    """A decorator that registers a check as a rule.

    Its arguments are what the rule's cautions have in common.
    """

    phrase: str
    """It stands for the caution in short reports."""

    advice: str

    figures: Sequence[str] = ()
    """The keys of the figures in doubt; empty means all."""

    marks: bool = False
    """Reports mark the arms: without its cause, they might be in another order."""

    minor: bool = False
    """Short reports leave it out."""

    whole_run: bool = False
    check: Check = field(init=False)

    @property
    def kind(self) -> str:
        return self.check.__name__.replace("_", "-")

    @property
    def meaning(self) -> str:
        """What the caution means for the reader's decision."""
        return first_paragraph(self.check.__doc__ or "")

    def __call__(self, check: Check) -> Check:
        self.check = check
        RULES.append(self)
        return check


RULES: list[Rule] = []  # all rules, most serious first


def cautions_of(run: Run) -> list[Caution]:
    """Return the cautions of a run, most serious first."""
    arms = _scopes(run)
    cautions = []
    for rule in RULES:
        scopes = [Scope(run)] if rule.whole_run else arms
        names_by_message: dict[str, list[str]] = {}
        for scope in scopes:
            message = rule.check(scope)
            if message:
                names_by_message.setdefault(message, []).append(scope.arm)
        if not names_by_message:
            continue
        texts = []
        for message, names in names_by_message.items():
            prefix = "" if rule.whole_run else f"{', '.join(names)}: "
            texts.append(prefix + message)
        caution = Caution(
            kind=rule.kind,
            text="; ".join(texts),
            advice=rule.advice,
            arms=sorted(filter(None, chain(*names_by_message.values()))),
            figures=list(rule.figures),
        )
        cautions.append(caution)
    return cautions


def _scopes(run: Run) -> list[Scope]:
    """Return what a rule looks at, for each arm."""
    names = {arm_key(arm): arm.name for arm in run.experiment.arms}
    references = {}
    for group, standings in rank_arms(run).items():
        for standing in standings:
            if decide(standing.ratio).word == "slower":
                name = names[group, standing.name]
                references[name] = names[group, standing.reference]
    scopes = []
    for arm in run.experiment.arms:
        trials = run.finished_trials_of(arm.name)
        slower_than = run.finished_trials_of(references.get(arm.name, ""))
        scopes.append(Scope(run, arm.name, trials, slower_than))
    return scopes


def commonest_verdict(trials: Iterable[Trial]) -> Bound | None:
    """Return the most common bottleneck of the trials; the first if several are.

    None if no trial has a verdict.
    """
    verdicts = [trial.bound for trial in trials if trial.bound is not None]
    return mode(verdicts) if verdicts else None


@Rule(
    "strategies or arms were left out",
    "ratios compare only what was measured: install the rest",
    whole_run=True,
)
def left_out(of: Scope) -> str | None:
    """Something faster may be missing: do not call an arm the fastest of all."""
    plan = of.run.experiment
    missing = [
        f"{strategy} was not measured: {reason}"
        for strategy, reason in plan.left_out.items()
    ]
    missing += [
        f"{other} was measured in place of {strategy}"
        for strategy, other in plan.replaced.items()
    ]
    unavailable = plan.unavailable_among(plan.unavailable_arms)
    if unavailable:
        missing.append(f"not measured: {unavailable}")
    return "; ".join(missing)


@Rule(
    "trials failed",
    "find the cause, then measure the missing trials (clientlab run --resume)",
    marks=True,
)
def failed_trials(of: Scope) -> str | None:
    """The arm has fewer rounds, perhaps only its good ones: do not rank it yet."""
    failed = failed_for_good(of.run, of.arm)
    if not failed:
        return None
    count = len(of.run.trials_of(of.arm))
    return f"{len(failed)} of {count} trials failed: {failed[0].reason}"


@Rule(
    "requests failed",
    "fix the errors before comparing: an arm with errors did less work",
    marks=True,
)
def errors(of: Scope) -> str | None:
    """An arm that gave up may look fast: read its errors before its speed."""
    faulty = [trial for trial in of.trials if trial.has_spoiling_errors]
    hidden = _describe_resent(of) or _hides_resets(of)
    if not faulty:
        return hidden
    failed = sum(trial.figures.failed for trial in faulty)
    requests = sum(trial.figures.requests for trial in faulty)
    message = f"{units.share(failed / requests)} of the requests failed"
    if len(faulty) < len(of.trials):
        message += f" in {len(faulty)} of {len(of.trials)} rounds"
    kinds = set[str]().union(*(trial.figures.errors for trial in faulty))
    message += f" ({', '.join(sorted(kinds))})"
    bounded = [key for key in QUANTILES if BY_KEY[key].has_bounds(faulty)]
    if bounded:
        message += f"; {bounded[0]} and above are lower bounds (≥)"
    return f"{message}; {hidden}" if hidden else message


def _describe_resent(of: Scope) -> str | None:
    """Return how many requests a client that retries makes of a call."""
    trials = [trial for trial in of.trials if trial.attempts is None]
    per_call = list(filter(None, map(attempts_per_call, trials)))
    if not per_call:
        return None
    count = units.digits(median(per_call))
    return f"its client sends failed requests again: {count} requests per call"


def _hides_resets(of: Scope) -> str | None:
    """Return that the arm's library sends reset requests again, if some were reset."""
    was_reset = any(
        "reset" in trial.figures.errors and trial.has_spoiling_errors
        for trial in of.run.trials
    )
    if not of.trials or not was_reset:
        return None
    with contextlib.suppress(LabError):  # a plug-in that is not installed here
        strategy = strategies.find(of.trials[0].planned.strategy)
        if strategies.client_spec(strategy.client).quirks.resends_after:
            return (
                "its library sends a request again if a used connection is dropped, so"
                " it hides most resets"
            )
    return None


@Rule(
    "no steady rate",
    "raise -d, or lower -c",
    figures=["throughput", "time_per_request"],
    marks=True,
)
def unsteady_rate(of: Scope) -> str | None:
    """The rate depends on the length of the trials, so the arm is not ranked: measure
    longer ones.
    """
    return find_unsteadiness(of.trials)


@Rule(
    "trials took longer than asked",
    "lower -c, or relieve the bottleneck; if single requests are slow, raise -d",
    marks=True,
)
def overlong(of: Scope) -> str | None:
    """The load was too high for the bottleneck: do not compare the arm with arms that
    finished in time.

    A trial is overlong if it took at least twice its duration and at least 1 s longer.
    Open loads are exempt: they fall behind their schedule.
    """
    if not of.trials:
        return None
    worst = max(of.trials, key=lambda trial: trial.wall_seconds)
    asked = of.run.experiment.workloads[worst.planned.workload].load.duration
    taken = worst.wall_seconds
    if asked is None or worst.figures.open_load is not None:
        return None
    if taken < max(2 * asked, asked + 1):
        return None
    reason = f"bottleneck: {worst.bound}"
    expired = worst.figures.errors.get("timeout")
    if expired:
        reason = f"{expired:,} of {worst.figures.requests:,} requests timed out"
    return f"took {units.time(taken)} instead of {asked:g} s ({reason})"


@Rule(
    "overloaded",
    "its latencies grow with the length of the trial: lower --rate, raise -c, or use"
    " --find-max",
    marks=True,
)
def overloaded(of: Scope) -> str | None:
    """The arm did not keep up with the planned rate: do not quote its latencies for
    that rate.
    """
    loads = [
        trial.figures.open_load
        for trial in of.trials
        if trial.bound == "behind-schedule"
    ]
    behind = list(filter(None, loads))
    if behind:
        worst = min(
            behind, key=lambda load: load.achieved_per_second / load.planned_per_second
        )
        achieved = units.rate(worst.achieved_per_second)
        planned = units.rate(worst.planned_per_second)
        dropped = f", dropped {worst.dropped:,}" if worst.dropped else ""
        return (
            f"sent {achieved} of {planned} requests/s{dropped}, with"
            f" {worst.in_flight_at_end or 0:,} in flight at the end"
        )
    for trial in of.trials:
        if trial.bound == "overloaded":
            growth = (
                describe_growth(trial.figures, trial.wall_seconds) or "the backlog grew"
            )
            return f"sent on schedule, but {growth}"
    return None


@Rule(
    "requests began late",
    "quote the latency from the planned start: that is when a user begins to wait",
    figures=["sent_p99", "sent_p50"],
)
def late_starts(of: Scope) -> str | None:
    """Requests were held back: quote the latency from the planned start, not from the
    moment of sending.

    The p99 from the planned start must be 1.2 times as long and 1 ms longer. A timer
    alone is about 0.1 ms late.
    """
    planned = BY_KEY["p99"]
    sent = BY_KEY["sent_p99"]
    from_planned = planned.over_rounds(of.trials)
    from_sent = sent.over_rounds(of.trials)
    if from_planned is None or from_sent is None:
        return None
    if from_planned < max(1.2 * from_sent, from_sent + 0.001):
        return None
    shown = planned.text(from_planned, at_least=planned.is_bound(of.trials))
    real = sent.text(from_sent)
    return f"p99 is {shown} from the planned start and {real} from the real one"


@Rule(
    "a server was the bottleneck",
    "its trials measured the server: give it more workers, threads or cores, or set "
    "a delay; for a link, send fewer or smaller requests",
    marks=True,
)
def server_bound(of: Scope) -> str | None:
    """The trials say little about the client.

    ApacheBench, and strategies that replace it, are exempt: they are meant to measure
    the server.
    """
    replacements = of.run.experiment.replaced.values()
    for trial in of.trials:
        if trial.figures.driver or trial.planned.strategy in replacements:
            return None
    bounds = {
        "upstream-bound": "the upstream was the bottleneck",
        "upstream-threads": "the upstream's threads were the bottleneck",
        "proxy-bound": "the proxy was the bottleneck",
        "link-bound": "the link's process was the bottleneck",
    }
    return bounds.get(of.bottleneck or "") or _describe_unequal_upstream(of)


def _describe_unequal_upstream(of: Scope) -> str | None:
    """Return how much longer the upstream held an arm's requests.

    Return None if that is not most of what makes the arm slower.
    """
    if not all(trial.figures.windows for trial in (*of.trials, *of.slower_than)):
        return None
    held = _median_held(of.trials)
    other_held = _median_held(of.slower_than)
    if held is None or other_held is None:
        return None
    longer = held - other_held
    cycle = median(map(_cycle_seconds, of.trials))
    slower = cycle - median(map(_cycle_seconds, of.slower_than))
    if longer <= slower / 2:
        return None
    return (
        f"the upstream held its requests {units.time(longer)} longer, which is most of"
        " the difference"
    )


def _cycle_seconds(trial: Trial) -> float:
    return trial.planned.concurrency * cost_of(trial)


def _median_held(trials: Iterable[Trial]) -> float | None:
    """Return how long the upstream held requests beyond the delay that they asked for.

    Return None if it is unknown.
    """
    held = []
    for trial in trials:
        use = trial.servers.upstream
        delay = trial.figures.delay_seconds
        if use is None or use.held_seconds is None or delay is None:
            continue
        if use.requests:
            held.append(use.held_seconds / use.requests - delay)
    return median(held) if held else None


@Rule(
    "the upstream wrote events late",
    "use fewer or slower streams, or give the upstream more workers or cores",
    figures=["first_event_p50", "first_event_p99", "gap_p50", "gap_p99"],
)
def late_events(of: Scope) -> str | None:
    """Gaps as long as the write error are the server's, not the client's. Lag and CPU
    time do not contain it.
    """
    error = BY_KEY["write_error_p99"]
    late = of.at_least_half(lambda trial: (error.of(trial) or 0.0) > _MOST_WRITE_ERROR)
    if not late:
        return None
    return f"the p99 of the write error is {error.text(error.over_rounds(late))}"


@Rule(
    "all cores were full",
    "stop other programs, use fewer workers, or set a delay",
    marks=True,
)
def machine(of: Scope) -> str | None:
    """Client and servers competed for the cores: a larger machine may give another
    order.
    """
    if of.bottleneck != "machine":
        return None
    return "all cores were full, but no single part was"


@Rule(
    "unexplained latency",
    "use py-spy dump or strace -f to see what the client waits for (a sleep, DNS, "
    "Nagle's algorithm, a lock)",
    marks=True,
)
def unaccounted(of: Scope) -> str | None:
    """Find out what the client waits for before you blame the library."""
    if of.bottleneck != "unaccounted":
        return None
    found = "nothing that the lab measures explains the latency"
    verdicts = [trial.verdict for trial in of.trials if trial.verdict is not None]
    held = [verdict.in_flight for verdict in verdicts]
    known = [one.upstream for one in held if one.upstream is not None]
    if not known:
        return found
    return (
        f"{found}; of {median(one.client for one in held):.1f} requests in flight,"
        f" {median(known):.1f} were at the upstream (means)"
    )


@Rule(
    "figures drift",
    "if all arms change, the server or the machine does: let it warm up, or find what"
    " grows there; if one does, look for a cache or a leak in its client",
    whole_run=True,
)
def drift(of: Scope) -> str | None:
    """The answer depends on when it was measured, although ratios within rounds may
    hold.

    Found: a line or a step over five rounds or more, a line within the rounds, and from
    three rounds on a change of more than four times. False alarms: 0 to 2 % of runs.
    """
    arms_by_rounds: dict[tuple[int, ...], dict[str, list[Trial]]] = {}
    for arm in of.run.experiment.arms:
        trials = of.run.finished_trials_of(arm.name)
        rounds = tuple(trial.planned.round for trial in trials)
        arms_by_rounds.setdefault(rounds, {})[arm.name] = trials
    most = max(arms_by_rounds, key=len, default=())
    if len(most) < FEWEST_ROUNDS:
        return None
    names, whole = zip(*arms_by_rounds[most].items(), strict=True)
    costs = np.array([[*map(cost_of, trials)] for trials in whole])
    if not (costs > 0).all():
        return None
    parts = [[*map(_costs_by_part, trials)] for trials in whole]
    is_divided = all(None not in of_arm for of_arm in parts)
    by_part = np.array(parts) if is_divided else None
    change = find_drift(np.log(costs), by_part)
    if change is None:
        return None
    arms = ", ".join(names[place] for place in change.arms) or "all arms"
    times = units.ratio(max(change.factor, 1 / change.factor))
    word = "longer" if change.factor > 1 else "shorter"
    label = ranked_by(whole[0]).label
    return f"the {label} of {arms} becomes {times} times {word} {_say_when(change)}"


def _say_when(drift: Drift) -> str:
    if drift.kind == "within":
        return "within each round"
    if drift.rounds is None:
        return "over the rounds"
    if drift.rounds == 1:
        return "after the first round"
    return f"after {units.count(drift.rounds)} rounds"


def _costs_by_part(trial: Trial) -> list[float] | None:
    """Return the logarithms of the time per request in equal parts of a trial.

    Return None if it has too few slices.
    """
    rates = [window.rate for window in trial.figures.windows]
    if len(rates) < FEWEST_PARTS or not all(rates):
        return None
    parts = np.array_split(np.array(rates, np.float64), FEWEST_PARTS)
    return [-float(np.log(part).mean()) for part in parts]


@Rule(
    "start-up was measured",
    "raise -n, -d or the experiment's warmup; or use --connections warm for pools of "
    "processes, and else --connections cold for all arms",
    marks=True,
)
def start_up(of: Scope) -> str | None:
    """A longer trial may give another order.

    The time includes starting a pool of processes, or opening connections that should
    have been warm: more than 5 per 100 requests.
    """
    if of.bottleneck == "start-up":
        return "most of the time passed before the last process of the pool had started"
    connections = BY_KEY["connections"]
    opened = of.at_least_half(
        lambda trial: (connections.of(trial) or 0) > 0.05 * trial.figures.requests
    )
    if not opened:
        return None
    planned = opened[0].planned
    if not is_warm(of.run.experiment.workloads[planned.workload]):
        return None
    with contextlib.suppress(LabError):  # a plug-in that is not installed here
        if strategies.find(planned.strategy).policy != "per call":
            return (
                "connections that should have been warm were opened during the measured"
                " time"
            )
    return None


@Rule(
    "the GIL was on",
    "a library without support for free threading switched it on: look for a newer"
    " release",
    marks=True,
)
def gil_on(of: Scope) -> str | None:
    """Do not judge free threading by this arm."""
    surroundings = of.run.surroundings
    environments = surroundings.environments or {}
    for trial in of.trials:
        build = surroundings.python_build
        if trial.planned.environment in environments:
            build = environments[trial.planned.environment].python_build
        has_gil = trial.measured is not None and trial.measured.gil
        if has_gil and is_free_threaded(build):
            return "this Python is built for free threading, but the GIL was on"
    return None


@Rule(
    "waits for a free connection (*)",
    "compare wall times (in an open load: latencies from the planned start) with "
    "executors that wait before the clock starts (semaphore, workers, threads)",
    figures=[
        figure.key for figure in FIGURES if figure.bounded and not figure.before_send
    ],
)
def waits_for_connection(of: Scope) -> str | None:
    """Do not compare these latencies with those of executors that wait before the clock
    starts.
    """
    if not any(trial.figures.waits_for_connection for trial in of.trials):
        return None
    return (
        "latencies include the wait for a free connection or HTTP/2 stream (marked *)"
    )


@Rule(
    "not as the experiment was written",
    "quote only a full run in unchanged surroundings",
    whole_run=True,
)
def changed(of: Scope) -> str | None:
    """Do not quote the run as the result of the experiment."""
    plan = of.run.experiment
    changes = []
    if plan.shortened:
        changes.append(f"quick form: {'; '.join(plan.shortened)}")
    if plan.changed:
        changes.append(f"changed on the command line: {'; '.join(plan.changed)}")
    changes += [
        f"other surroundings from trial {resumption.trials + 1} on:"
        f" {'; '.join(resumption.differences)}"
        for resumption in of.run.resumed
        if resumption.differences
    ]
    return "; ".join(changes)


@Rule(
    "too few rounds",
    f"raise --budget, or use --rounds {FEWEST_ROUNDS} or more",
    whole_run=True,
)
def few_rounds(of: Scope) -> str | None:
    """Do not believe a difference: the intervals are wide, or there are none."""
    if of.run.rounds < FEWEST_ROUNDS:
        return (
            f"an interval needs {FEWEST_ROUNDS} rounds, and there are {of.run.rounds}"
        )
    if of.run.rounds_ended != "time-budget":
        return None
    precision = f"{of.run.experiment.precision:.2%}"
    return f"time ran out before all intervals were within {precision}"


@Rule(
    "short trials",
    "raise -n: one delay by the scheduler is a large part of such a trial",
)
def short_trials(of: Scope) -> str | None:
    """Chance has a large part in the result: measure longer before you compare."""
    for trial in of.trials:
        seconds = trial.wall_seconds or SHORT_SECONDS
        if seconds < SHORT_SECONDS and not trial.is_cold:
            return f"trials took less than {SHORT_SECONDS:g} s"
    return None


@Rule(
    "p99 rests on few requests",
    "send at least 1,000 requests (-n) to compare p99",
    figures=["p99", "first_event_p99"],
    minor=True,
)
def few_requests(of: Scope) -> str | None:
    """Do not compare p99: fewer than ten requests of a trial were slower.

    With ten, p99 of exponential delays has a standard deviation of 7 % and a bias of -1
    %; with one, 17 % and -9 % (order statistics of 20,000 and 100,000 draws).
    """
    for trial in of.trials:
        is_known = trial.figures.latency_seconds is not None and not trial.is_cold
        if is_known and trial.figures.requests < 1000:
            return "p99 rests on fewer than ten requests"
    return None


@Rule(
    "other programs disturbed trials",
    "measure on a quiet machine, or add rounds (--budget)",
)
def noisy_trials(of: Scope) -> str | None:
    """A difference may come from those programs, although intervals allow for them.

    A trial is noisy if other programs took 0.2 cores while processes waited for a CPU,
    or if the hypervisor took 0.05 cores. In 105 trials on two cores, the wall time was
    1.03 times its median if others took 0.2 to 0.5 cores, 1.20 times up to 1 core, and
    1.68 times above. Many kernels sample CPU time, with an error of 0.05 s per trial.
    """
    if not of.at_least_half(_is_noisy):
        return None
    return "other programs took CPU time in at least half of the trials"


def _is_noisy(trial: Trial) -> bool:
    noise = None if trial.measured is None else trial.measured.disturbance
    if noise is None or noise.seconds < SHORT_SECONDS:
        return False
    if (noise.steal_seconds or 0) >= 0.05 * noise.seconds:
        return True
    waited = noise.cpu_pressure_seconds
    if waited is not None and waited < 0.05 * noise.seconds:
        return False
    return (noise.others_cpu_seconds or 0) >= max(0.1, 0.2 * noise.seconds)


REORDERING = frozenset(rule.kind for rule in RULES if rule.marks)
MINOR = frozenset(rule.kind for rule in RULES if rule.minor)
PHRASES = {rule.kind: rule.phrase for rule in RULES}
