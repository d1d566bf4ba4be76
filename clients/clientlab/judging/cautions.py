"""Cautions: reasons to doubt the numbers of a run, each with advice.

Reports show them above the numbers.

A rule looks at an arm, or at the whole run, and returns a message if it applies.
Everything else that its cautions say is declared once, in the decorator. The first line
of a rule's docstring says what the caution means for the reader's decision; `clientlab
list cautions` prints it. All messages of one rule make one caution.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from clientlab import strategies, units
from clientlab.errors import LabError
from clientlab.judging.ranking import arm_key, rank_arms
from clientlab.judging.steadiness import find_unsteadiness
from clientlab.results.document import Caution, Run, failed_for_good
from clientlab.results.figures import BY_KEY, FIGURES, cost_of, ranked_by
from clientlab.results.surroundings import is_free_threaded
from clientlab.statistics.decisions import decide
from clientlab.statistics.drift import FEWEST_PARTS, find_drift
from clientlab.statistics.histogram import QUANTILES
from clientlab.statistics.ratios import FEWEST_ROUNDS
from clientlab.text import first_paragraph
from clientlab.trial.bottleneck import SHORT_SECONDS, describe_growth
from clientlab.trial.result import Bound, Trial
from clientlab.workload.load import is_warm

_MOST_WRITE_ERROR = 1e-3  # seconds by which an upstream may write an event late, at p99


@dataclass(frozen=True)
class Scope:
    """What a rule looks at: an arm with its finished trials, or the whole run if `arm`
    is empty.

    `slower_than`: the trials of the arm that it is compared with, if it is found to be
    slower.
    """

    run: Run
    arm: str = ""
    trials: Sequence[Trial] = ()
    slower_than: Sequence[Trial] = ()

    @property
    def bottleneck(self) -> Bound | None:
        return commonest_verdict(self.trials)

    def at_least_half(self, holds: Callable[[Trial], bool]) -> list[Trial]:
        """Return the trials for which `holds` is true if they are at least half: fewer
        do not move the median.
        """
        found = [trial for trial in self.trials if holds(trial)]
        return found if 2 * len(found) >= len(self.trials) else []


Check = Callable[[Scope], str | None]


@dataclass
class Rule:
    """A decorator that registers a check as a rule.

    Its arguments are what the rule's cautions have in common.

    `phrase` stands for the caution in short reports, which leave out `minor` ones.
    `figures` are the keys of the figures in doubt; empty means all. Reports mark the
    arms of a caution that `marks` them: without its cause, they might be in another
    order.
    """

    phrase: str
    advice: str
    figures: Sequence[str] = ()
    marks: bool = False
    minor: bool = False
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
        arms_by_message: dict[str, list[str]] = {}
        for scope in [Scope(run)] if rule.whole_run else arms:
            if message := rule.check(scope):
                arms_by_message.setdefault(message, []).append(scope.arm)
        if arms_by_message:
            parts = [
                message if rule.whole_run else f"{', '.join(names)}: {message}"
                for message, names in arms_by_message.items()
            ]
            names = (
                []
                if rule.whole_run
                else sorted(
                    name for names in arms_by_message.values() for name in names
                )
            )
            cautions.append(
                Caution(
                    kind=rule.kind,
                    text="; ".join(parts),
                    advice=rule.advice,
                    arms=names,
                    figures=[*rule.figures],
                )
            )
    return cautions


def _scopes(run: Run) -> list[Scope]:
    """Return what a rule looks at, for each arm."""
    arms = {arm_key(arm): arm.name for arm in run.experiment.arms}
    references = {}
    for group, standings in rank_arms(run).items():
        for one in standings:
            if one.ratio is not None and decide(one.ratio).word == "slower":
                references[arms[group, one.name]] = arms[group, one.reference]
    scopes = []
    for arm in run.experiment.arms:
        reference = references.get(arm.name)
        slower_than = [] if reference is None else run.finished_trials_of(reference)
        scopes.append(
            Scope(run, arm.name, run.finished_trials_of(arm.name), slower_than)
        )
    return scopes


def commonest_verdict(trials: Iterable[Trial]) -> Bound | None:
    """Return the most common bottleneck of the trials; the first if several are.

    None if no trial has a verdict.
    """
    counts = Counter(trial.bound for trial in trials if trial.bound is not None)
    return counts.most_common(1)[0][0] if counts else None


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
    if unavailable := plan.unavailable_among(plan.unavailable_arms):
        missing.append(f"not measured: {unavailable}")
    return "; ".join(missing)


@Rule(
    "trials failed",
    "find the cause, then measure the missing trials (clientlab run --resume)",
    marks=True,
)
def failed_trials(of: Scope) -> str | None:
    """The arm has fewer rounds, perhaps only its good ones: do not rank it yet."""
    failed, count = failed_for_good(of.run, of.arm), len(of.run.trials_of(of.arm))
    return (
        f"{len(failed)} of {count} trials failed: {failed[0].reason}"
        if failed
        else None
    )


@Rule(
    "requests failed",
    "fix the errors before comparing: an arm with errors did less work",
    marks=True,
)
def errors(of: Scope) -> str | None:
    """An arm that gave up may look fast: read its errors before its speed."""
    faulty = [trial for trial in of.trials if trial.figures.errors]
    hidden = _hides_resets(of)
    if not faulty:
        return hidden
    share = sum(trial.figures.failed for trial in faulty) / sum(
        trial.figures.requests for trial in faulty
    )
    kinds = ", ".join(
        sorted({kind for trial in faulty for kind in trial.figures.errors})
    )
    where = (
        ""
        if len(faulty) == len(of.trials)
        else f" in {len(faulty)} of {len(of.trials)} rounds"
    )
    lowest = next((key for key in QUANTILES if BY_KEY[key].has_bounds(faulty)), None)
    bounds = f"; {lowest} and above are lower bounds (≥)" if lowest else ""
    return (
        f"{units.share(share)} of the requests failed{where}"
        f" ({kinds}){bounds}{f'; {hidden}' if hidden else ''}"
    )


def _hides_resets(of: Scope) -> str | None:
    """Return that requests may have been sent again, if some were reset in the run and
    the arm's library does that.
    """
    if not of.trials or not any(
        "reset" in trial.figures.errors for trial in of.run.trials
    ):
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
    worst = max(
        of.trials, key=lambda trial: trial.figures.wall_seconds or 0.0, default=None
    )
    asked = (
        of.run.experiment.workloads[worst.planned.workload].duration if worst else None
    )
    if worst is None or asked is None or worst.figures.open_load is not None:
        return None
    taken = worst.figures.wall_seconds or 0.0
    if taken < max(2 * asked, asked + 1):
        return None
    reason = f"bottleneck: {worst.bound}"
    if expired := worst.figures.errors.get("timeout"):
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
    behind = [
        load
        for trial in of.trials
        if trial.bound == "behind-schedule" and (load := trial.figures.open_load)
    ]
    if behind:
        worst = min(
            behind, key=lambda load: load.achieved_per_second / load.planned_per_second
        )
        sent = (
            f"{units.rate(worst.achieved_per_second)} of"
            f" {units.rate(worst.planned_per_second)} requests/s"
        )
        dropped = f", dropped {worst.dropped:,}" if worst.dropped else ""
        return (
            f"sent {sent}{dropped}, with {worst.in_flight_at_end or 0:,} in flight at"
            " the end"
        )
    grown = next((trial for trial in of.trials if trial.bound == "overloaded"), None)
    return (
        f"sent on schedule, but {describe_growth(grown.figures) or 'the backlog grew'}"
        if grown
        else None
    )


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
    planned, sent = BY_KEY["p99"], BY_KEY["sent_p99"]
    late, real = planned.over_rounds(of.trials), sent.over_rounds(of.trials)
    if late is None or real is None or late < max(1.2 * real, real + 0.001):
        return None
    shown = planned.text(late, at_least=planned.is_bound(of.trials))
    return (
        f"p99 is {shown} from the planned start and {sent.text(real)} from the real one"
    )


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
    if any(
        trial.figures.driver is not None or trial.planned.strategy in replacements
        for trial in of.trials
    ):
        return None
    bounds = {
        "upstream-bound": "the upstream was the bottleneck",
        "upstream-threads": "the upstream's threads were the bottleneck",
        "proxy-bound": "the proxy was the bottleneck",
        "link-bound": "the link's process was the bottleneck",
    }
    return bounds.get(of.bottleneck or "") or _describe_unequal_upstream(of)


def _describe_unequal_upstream(of: Scope) -> str | None:
    """Return how much longer the upstream held an arm's requests if that is most of
    what makes the arm slower.
    """
    if not all(trial.figures.windows for trial in (*of.trials, *of.slower_than)):
        return None

    def compute_work(trial: Trial) -> float | None:
        """Return the seconds that the upstream held a request beyond the delay that it
        asked for.
        """
        use, asked = trial.servers.upstream, trial.figures.delay_seconds
        if use is None or use.held_seconds is None or not use.requests or asked is None:
            return None
        return use.held_seconds / use.requests - asked

    def compute_cycle(trial: Trial) -> float:
        return trial.planned.concurrency * cost_of(trial)

    works = [
        [compute_work(trial) for trial in trials]
        for trials in (of.trials, of.slower_than)
    ]
    own, other = ([work for work in one if work is not None] for one in works)
    if not own or not other:
        return None
    longer = median(own) - median(other)
    slower = median(map(compute_cycle, of.trials)) - median(
        map(compute_cycle, of.slower_than)
    )
    if longer <= slower / 2:
        return None
    return (
        f"the upstream held its requests {units.time(longer)} longer, which is most of"
        " the difference"
    )


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
    return (
        f"the p99 of the write error is {error.text(error.over_rounds(late))}"
        if late
        else None
    )


@Rule(
    "all cores were full",
    "stop other programs, use fewer workers, or set a delay",
    marks=True,
)
def machine(of: Scope) -> str | None:
    """Client and servers competed for the cores: a larger machine may give another
    order.
    """
    return (
        "all cores were full, but no single part was"
        if of.bottleneck == "machine"
        else None
    )


@Rule(
    "unexplained latency",
    "use py-spy dump or strace -f to see what the client waits for (a sleep, DNS, "
    "Nagle's algorithm, a lock)",
    marks=True,
)
def unaccounted(of: Scope) -> str | None:
    """Find out what the client waits for before you blame the library."""
    return (
        "nothing that the lab measures explains the latency"
        if of.bottleneck == "unaccounted"
        else None
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
    trials = {
        arm.name: of.run.finished_trials_of(arm.name) for arm in of.run.experiment.arms
    }
    rounds = {
        name: tuple(trial.planned.round for trial in arm)
        for name, arm in trials.items()
    }
    most = max(rounds.values(), key=len, default=())
    whole = {name: arm for name, arm in trials.items() if rounds[name] == most}
    if len(most) < FEWEST_ROUNDS or not all(
        cost_of(trial) > 0 for arm in whole.values() for trial in arm
    ):
        return None
    by_round = np.log([[cost_of(trial) for trial in arm] for arm in whole.values()])
    parts = [[_costs_by_part(trial) for trial in arm] for arm in whole.values()]
    is_divided = all(part is not None for arm in parts for part in arm)
    found = find_drift(by_round, np.array(parts) if is_divided else None)
    if found is None:
        return None
    names = [*whole]
    who = ", ".join(names[place] for place in found.arms) or "all arms"
    label = ranked_by(next(iter(whole.values()))).label
    times = units.ratio(max(found.factor, 1 / found.factor))
    change = f"becomes {times} times {'longer' if found.factor > 1 else 'shorter'}"
    if found.kind == "within":
        when = "within each round"
    else:
        when = (
            "over the rounds"
            if found.rounds is None
            else f"after {units.count(found.rounds)} rounds"
        )
        when = "after the first round" if found.rounds == 1 else when
    return f"the {label} of {who} {change} {when}"


def _costs_by_part(trial: Trial) -> list[float] | None:
    """Return the logarithms of the time per request in equal parts of a trial; None if
    it has too few slices.
    """
    rates = [window.rate for window in trial.figures.windows]
    known = [rate for rate in rates if rate]
    if len(known) < len(rates) or len(known) < FEWEST_PARTS:
        return None
    return [-float(np.log(part).mean()) for part in np.array_split(known, FEWEST_PARTS)]


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
    opened = of.at_least_half(
        lambda trial: (
            (BY_KEY["connections"].of(trial) or 0) > 0.05 * trial.figures.requests
        )
    )
    if not opened or not is_warm(
        of.run.experiment.workloads[opened[0].planned.workload]
    ):
        return None
    with contextlib.suppress(LabError):  # a plug-in that is not installed here
        if strategies.find(opened[0].planned.strategy).policy != "per call":
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
    machine = of.run.surroundings
    builds = {
        name: one.python_build for name, one in (machine.environments or {}).items()
    }
    locked = [
        trial.planned.environment
        for trial in of.trials
        if trial.measured is not None and trial.measured.gil
    ]
    on = any(
        is_free_threaded(builds.get(environment or "", machine.python_build))
        for environment in locked
    )
    return "this Python is built for free threading, but the GIL was on" if on else None


@Rule(
    "waits for a free connection (*)",
    "compare wall times (in an open load: latencies from the planned start) with "
    "executors that wait before the clock starts (semaphore, workers, threads)",
    figures=[one.key for one in FIGURES if one.bounded and not one.before_send],
)
def waits_for_connection(of: Scope) -> str | None:
    """Do not compare these latencies with those of executors that wait before the clock
    starts.
    """
    waits = any(trial.figures.waits_for_connection for trial in of.trials)
    return (
        "latencies include the wait for a free connection or HTTP/2 stream (marked *)"
        if waits
        else None
    )


@Rule(
    "not as the experiment was written",
    "quote only a full run in unchanged surroundings",
    whole_run=True,
)
def changed(of: Scope) -> str | None:
    """Do not quote the run as the result of the experiment."""
    plan = of.run.experiment
    found = [f"quick form: {'; '.join(plan.shortened)}"] if plan.shortened else []
    found += (
        [f"changed on the command line: {'; '.join(plan.changed)}"]
        if plan.changed
        else []
    )
    found += [
        f"other surroundings from trial {one.trials + 1} on:"
        f" {'; '.join(one.differences)}"
        for one in of.run.resumed
        if one.differences
    ]
    return "; ".join(found)


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
    wide = of.run.rounds_ended == "time-budget"
    return (
        "time ran out before all intervals were within"
        f" {of.run.experiment.precision:.2%}"
        if wide
        else None
    )


@Rule(
    "short trials",
    "raise -n: one delay by the scheduler is a large part of such a trial",
)
def short_trials(of: Scope) -> str | None:
    """Chance has a large part in the result: measure longer before you compare."""
    short = any(
        (one.figures.wall_seconds or SHORT_SECONDS) < SHORT_SECONDS
        for one in of.trials
        if not one.is_cold
    )
    return f"trials took less than {SHORT_SECONDS:g} s" if short else None


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
    few = any(
        one.figures.requests < 1000 and one.figures.latency_seconds
        for one in of.trials
        if not one.is_cold
    )
    return "p99 rests on fewer than ten requests" if few else None


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

    def is_noisy(trial: Trial) -> bool:
        noise = None if trial.measured is None else trial.measured.disturbance
        if noise is None or noise.seconds < SHORT_SECONDS:
            return False
        waited = (
            noise.cpu_pressure_seconds is None
            or noise.cpu_pressure_seconds >= 0.05 * noise.seconds
        )
        others = (noise.others_cpu_seconds or 0) >= max(0.1, 0.2 * noise.seconds)
        return (waited and others) or (noise.steal_seconds or 0) >= 0.05 * noise.seconds

    return (
        "other programs took CPU time in at least half of the trials"
        if of.at_least_half(is_noisy)
        else None
    )


_BY_KIND = {rule.kind: rule for rule in RULES}

# A kind in the stored run of the demo, which was measured before the rule had another
# name.
_BY_KIND["not-warm"] = _BY_KIND["start-up"]

REORDERING = frozenset(kind for kind, rule in _BY_KIND.items() if rule.marks)
MINOR = frozenset(kind for kind, rule in _BY_KIND.items() if rule.minor)
PHRASES = {kind: rule.phrase for kind, rule in _BY_KIND.items()}
