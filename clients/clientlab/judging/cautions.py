"""Cautions: reasons to doubt the numbers of a run, each with advice. Reports show them above the numbers.

A rule looks at an arm, or at the whole run, and returns a message if it applies. What the cautions of a rule have in
common (the advice, the figures in doubt, the phrase of a short report) is declared once, in the decorator. The
docstring of a rule says which decision it changes. The messages of one rule make one caution.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from clientlab import strategies, units
from clientlab.analysis.latencies import QUANTILES
from clientlab.analysis.ratios import FEWEST_ROUNDS
from clientlab.errors import LabError
from clientlab.judging.backlog import growth_in
from clientlab.judging.verdict import SHORT_SECONDS
from clientlab.results.bottleneck import Bound
from clientlab.results.document import Caution, Run, failed_for_good
from clientlab.results.figures import BY_KEY, FIGURES
from clientlab.results.machine import is_free_threaded
from clientlab.results.trial import Trial
from clientlab.workload.load import is_warm


@dataclass(frozen=True)
class Scope:
    """What a rule looks at: an arm with its finished trials, or the whole run, whose `arm` is empty."""

    run: Run
    arm: str = ""
    trials: Sequence[Trial] = ()

    @property
    def bottleneck(self) -> Bound | None:
        return commonest_verdict(self.trials)

    def at_least_half(self, holds: Callable[[Trial], bool]) -> list[Trial]:
        """Return the trials of which something holds, if they are at least half: fewer move no median."""
        found = [trial for trial in self.trials if holds(trial)]
        return found if 2 * len(found) >= len(self.trials) else []


Check = Callable[[Scope], str | None]


@dataclass
class Rule:
    """A decorator that makes a check a rule, with what its cautions have in common.

    `phrase`: for short reports. `figures`: keys of the figures in doubt; empty means all. `marks`: the arms might be in
    another order without what it names, so reports mark them. `minor`: short reports leave it out.
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

    def __call__(self, check: Check) -> Check:
        self.check = check
        RULES.append(self)
        return check


RULES: list[Rule] = []  # the most serious first


def cautions_of(run: Run) -> list[Caution]:
    """Return all cautions of a run, the most serious first."""
    finished = by_arm(run)
    scopes = [Scope(run, arm.name, finished.get(arm.name, [])) for arm in run.experiment.arms]
    found = []
    for rule in RULES:
        named: dict[str, list[str]] = {}  # message to the arms that it is about
        for scope in [Scope(run)] if rule.whole_run else scopes:
            if message := rule.check(scope):
                named.setdefault(message, []).append(scope.arm)
        if named:
            text = "; ".join(f"{', '.join(arms)}: {text}" if any(arms) else text for text, arms in named.items())
            names = sorted(arm for arms in named.values() for arm in arms if arm)
            found.append(Caution(kind=rule.kind, text=text, advice=rule.advice, arms=names, figures=[*rule.figures]))
    return found


def by_arm(run: Run) -> dict[str, list[Trial]]:
    """Return the finished trials of each arm that has any."""
    found: dict[str, list[Trial]] = {}
    for trial in run.trials:
        if trial.status == "done":
            found.setdefault(trial.arm, []).append(trial)
    return found


def commonest_verdict(trials: Iterable[Trial]) -> Bound | None:
    """Return the commonest bottleneck of the trials, the first of several. Return None if no trial has a verdict."""
    counts = Counter(trial.verdict for trial in trials if trial.verdict is not None)
    return counts.most_common(1)[0][0] if counts else None


@Rule("strategies or arms were left out", "ratios compare only what was measured: install the rest", whole_run=True)
def left_out(of: Scope) -> str | None:
    """Something faster may be missing: do not call an arm the fastest of all that the experiment names."""
    plan = of.run.experiment
    missing = [f"{strategy} was not measured: {reason}" for strategy, reason in plan.left_out.items()]
    missing += [f"{other} was measured in place of {strategy}" for strategy, other in plan.replaced.items()]
    if unavailable := plan.unavailable_among(plan.unavailable_arms):
        missing.append(f"not measured: {unavailable}")
    return "; ".join(missing)


@Rule("trials failed", "find the cause, then measure the missing trials (clientlab run --resume)", marks=True)
def failed_trials(of: Scope) -> str | None:
    """The arm has fewer rounds, perhaps only the good ones: do not rank it before it has all."""
    every = of.run.trials_of(of.arm)
    failed = failed_for_good(of.run, of.arm) if len(every) > len(of.trials) else []
    return f"{len(failed)} of {len(every)} trials failed: {failed[0].reason}" if failed else None


@Rule("requests failed", "an arm with errors did less work: fix them before you compare its speed", marks=True)
def errors(of: Scope) -> str | None:
    """A fast arm may be one that gave up: look at its errors before its speed."""
    faulty = [trial for trial in of.trials if trial.errors]
    if not faulty:
        return None
    share = sum(sum(trial.errors.values()) for trial in faulty) / sum(trial.requests for trial in faulty)
    kinds = ", ".join(sorted({kind for trial in faulty for kind in trial.errors}))
    where = "" if len(faulty) == len(of.trials) else f" in {len(faulty)} of {len(of.trials)} rounds"
    lowest = next((key for key in QUANTILES if BY_KEY[key].has_bounds(faulty)), None)
    bounds = f"; {lowest} and above are lower bounds (≥)" if lowest else ""
    return f"{units.share(share)} of the requests failed{where} ({kinds}){bounds}"


@Rule("trials took longer than asked", "lower -c, or change what is named; for slow requests raise -d", marks=True)
def overlong(of: Scope) -> str | None:
    """The load was more than the part named can do in time: do not compare the arm with those that kept the time.

    A trial is overlong if it took twice its duration and at least 1 s more. An open load falls behind its schedule
    instead, and a trial that a few slow requests alone prolonged has a long tail.
    """
    worst = max(of.trials, key=lambda trial: trial.wall_seconds or 0.0, default=None)
    asked = of.run.experiment.workloads[worst.workload].duration if worst else None
    if worst is None or asked is None or worst.open_load is not None:
        return None
    taken, usual = worst.wall_seconds or 0.0, worst.latency_seconds
    has_long_tail = usual is not None and usual.p99 < (worst.tail_seconds or 0.0) / 2
    if taken < max(2 * asked, asked + 1) or has_long_tail:
        return None
    expired = worst.errors.get("timeout")
    reason = f"{expired:,} of {worst.requests:,} requests timed out" if expired else f"bottleneck: {worst.verdict}"
    return f"took {units.time(taken)} instead of {asked:g} s ({reason})"


@Rule("overloaded", "such latencies grow with the trial: lower --rate, raise -c, or use --find-max", marks=True)
def overloaded(of: Scope) -> str | None:
    """The arm did not hold the rate of its schedule: its latencies are not those at that rate."""
    behind = [trial.open_load for trial in of.trials if trial.verdict == "behind-schedule" and trial.open_load]
    if behind:
        worst = min(behind, key=lambda load: load.achieved_per_second / load.planned_per_second)
        sent = f"{units.rate(worst.achieved_per_second)} of {units.rate(worst.planned_per_second)} requests/s"
        dropped = f", dropped {worst.dropped:,}" if worst.dropped else ""
        return f"sent {sent}{dropped}, with {worst.in_flight_at_end or 0:,} in flight at the end"
    grown = [growth_in(trial) or "the backlog grew" for trial in of.trials if trial.verdict == "overloaded"]
    return f"sent on schedule, but {grown[0]}" if grown else None


@Rule("requests began late", "quote the latency from the planned start: a user waits from then on",
      figures=["sent_p99", "sent_p50"])  # fmt: skip
def late_starts(of: Scope) -> str | None:
    """Latencies from the real start look good because requests were held back: do not quote them.

    p99 from the planned start must be 1.2 times as long and 1 ms longer. A timer alone is some 0.1 ms late.
    """
    planned, sent = BY_KEY["p99"], BY_KEY["sent_p99"]
    late, real = planned.over_rounds(of.trials), sent.over_rounds(of.trials)
    if late is None or real is None or late < max(1.2 * real, real + 0.001):
        return None
    shown = planned.text(late, at_least=planned.is_bound(of.trials))
    return f"p99 is {shown} from the planned start and {sent.text(real)} from the real one"


_SERVERS = {
    "upstream-bound": "the upstream was the bottleneck",
    "upstream-threads": "the upstream's threads were the bottleneck",
    "proxy-bound": "the proxy was the bottleneck",
    "link-bound": "the link's process was the bottleneck",
}


@Rule("a server was the bottleneck", "these trials measured it and not the client: give it more workers, threads or "
      "cores, or set a delay; for a link, send fewer or smaller requests", marks=True)  # fmt: skip
def server_bound(of: Scope) -> str | None:
    """A server limited the arm: do not conclude that its client is slow, or as fast as another.

    ApacheBench and the like, and what replaces them, are meant to measure the server.
    """
    replacements = of.run.experiment.replaced.values()
    drives = any(trial.driver is not None or trial.strategy in replacements for trial in of.trials)
    return None if drives else _SERVERS.get(of.bottleneck or "")


@Rule("all cores were full", "stop other programs, use fewer workers, or set a delay", marks=True)
def machine(of: Scope) -> str | None:
    """Client and servers competed for the cores: on a larger machine the order may differ."""
    return "all cores were full, and no part alone" if of.bottleneck == "machine" else None


@Rule("unexplained latency", "look for what the client waits for (a sleep, DNS, Nagle's algorithm, a lock) with "
      "py-spy dump or strace -f", marks=True)  # fmt: skip
def unaccounted(of: Scope) -> str | None:
    """The arm mostly waited for something that can perhaps be fixed: do not take it for a property of its library."""
    return "nothing that the lab measures explains the latency" if of.bottleneck == "unaccounted" else None


@Rule("start-up was measured", "raise -n, -d or the experiment's warmup; or use --connections warm for a pool of "
      "processes, and --connections cold for all arms otherwise", marks=True)  # fmt: skip
def start_up(of: Scope) -> str | None:
    """The time includes starting a pool or opening connections: a longer trial may give another order.

    Connections count if they should have been warm, and more than 5 per 100 requests were opened.
    """
    if of.bottleneck == "start-up":
        return "most of the time passed until the last process of the pool had begun"
    opened = of.at_least_half(lambda trial: (trial.connections_opened or 0) > 0.05 * trial.requests)
    cold = bool(opened) and _should_be_warm(of.run, opened[0])
    return "connections were opened in the measured time, although they should have been warm" if cold else None


def _should_be_warm(run: Run, trial: Trial) -> bool:
    """Return whether the strategy keeps connections, and the workload asks to open them before the measured time."""
    if not is_warm(run.experiment.workloads[trial.workload]):
        return False
    try:
        return strategies.find(trial.strategy).policy != "per call"
    except LabError:  # the strategy is not installed here: unknown
        return False


@Rule("the GIL was on", "a library without free threading switched it on: look for a newer release", marks=True)
def gil_on(of: Scope) -> str | None:
    """The Python is built for free threading, but the arm did not use it: do not judge free threading by it."""
    machine = of.run.surroundings
    builds = {name: one.python_build for name, one in (machine.environments or {}).items()}
    on = any(trial.gil and is_free_threaded(builds.get(trial.environment or "", machine.python_build))
             for trial in of.trials)  # fmt: skip
    return "the Python is built for free threading, but the GIL was on" if on else None


@Rule("waits for a free connection (*)", "compare wall time (of an open load: latencies from the planned start) with "
      "executors that wait before the clock starts (semaphore, workers, threads)",
      figures=[one.key for one in FIGURES if one.bounded and not one.before_send])  # fmt: skip
def waits_for_connection(of: Scope) -> str | None:
    """Latencies include the wait in the client's own queue: do not compare them with those of other executors."""
    waits = any(trial.waits_for_connection for trial in of.trials)
    return "latencies include the wait for a free connection or HTTP/2 stream (marked *)" if waits else None


@Rule("not as the experiment was written", "quote only a whole run in unchanged surroundings", whole_run=True)
def changed(of: Scope) -> str | None:
    """The quick form, options, or new surroundings after a resumption: do not quote it as the experiment's result."""
    plan = of.run.experiment
    found = [f"quick form: {'; '.join(plan.shortened)}"] if plan.shortened else []
    found += [f"changed on the command line: {'; '.join(plan.changed)}"] if plan.changed else []
    found += [f"other surroundings from trial {one.trials + 1} on: {'; '.join(one.differences)}"
              for one in of.run.resumed if one.differences]  # fmt: skip
    return "; ".join(found)


@Rule("too few rounds", f"raise --budget, or use --rounds {FEWEST_ROUNDS} or more, before you believe a difference",
      whole_run=True)  # fmt: skip
def few_rounds(of: Scope) -> str | None:
    """Intervals are wide, or there are none: do not believe a difference."""
    if of.run.experiment.rounds < FEWEST_ROUNDS:
        return f"an interval needs {FEWEST_ROUNDS} rounds, and there are {of.run.experiment.rounds}"
    wide = of.run.rounds_ended == "time-budget"
    return f"the time was over before all intervals were within {of.run.experiment.precision:.2%}" if wide else None


@Rule("short trials", "one delay of the scheduler is a large part of such a trial: raise -n")
def short_trials(of: Scope) -> str | None:
    """Chance decides a large part of the trial: measure longer before you compare."""
    short = any(trial.wall_seconds is not None and trial.wall_seconds < SHORT_SECONDS for trial in of.trials)
    return f"trials took less than {SHORT_SECONDS:g} s" if short else None


@Rule("p99 rests on few requests", "send at least 1,000 requests (-n) to compare p99", figures=["p99"], minor=True)
def few_requests(of: Scope) -> str | None:
    """Fewer than ten requests of a trial were slower than p99: do not compare p99.

    With ten, p99 of exponential delays has a standard deviation of 7 % and a bias of -1 %; with one, 17 % and -9 %
    (order statistics of 20,000 and 100,000 draws).
    """
    few = any(trial.requests < 1000 and trial.latency_seconds for trial in of.trials)
    return "p99 rests on fewer than ten requests" if few else None


@Rule("other programs disturbed trials", "measure on a quiet machine, or add rounds (--budget)")
def noisy_trials(of: Scope) -> str | None:
    """Others took CPU time in half of the trials: a difference may be theirs. Intervals include it.

    A trial is noisy if others took 0.2 cores while processes waited for a CPU, or the hypervisor took 0.05 cores. In
    105 trials on two cores, the wall time was 1.03 times its median if others took 0.2 to 0.5 cores, 1.20 times up to 1
    core, and 1.68 times above. Many kernels sample the CPU time of others, give or take 0.05 s per trial.
    """

    def is_noisy(trial: Trial) -> bool:
        noise = trial.noise
        if noise is None or noise.seconds < SHORT_SECONDS:
            return False
        waited = noise.cpu_pressure_seconds is None or noise.cpu_pressure_seconds >= 0.05 * noise.seconds
        others = (noise.others_cpu_seconds or 0) >= max(0.1, 0.2 * noise.seconds)
        return (waited and others) or (noise.steal_seconds or 0) >= 0.05 * noise.seconds

    return "others took CPU time in at least half of the trials" if of.at_least_half(is_noisy) else None


_FORMER = {"server-bound": "upstream-bound", "start-up": "not-warm", "errors": "percentiles-of-failures"}
"""Kind → the kind that it replaced, which is in the stored runs of the findings."""
REORDERING = frozenset(kind for rule in RULES if rule.marks for kind in (rule.kind, _FORMER.get(rule.kind, rule.kind)))
MINOR = frozenset(rule.kind for rule in RULES if rule.minor)
PHRASES = {kind: rule.phrase for rule in RULES for kind in (rule.kind, _FORMER.get(rule.kind, rule.kind))}
