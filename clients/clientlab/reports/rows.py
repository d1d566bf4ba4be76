"""A run as rows, a strategy each: what the table, the chart and the answer are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from clientlab.analysis.ratios import Ratio
from clientlab.analysis.standings import Figures, Standing, standings
from clientlab.runs.document import Run, Trial


@dataclass(frozen=True)
class Row:
    """A strategy's medians over its rounds.

    `costs`: seconds for a successful request, by round; `errors` are summed.
    """

    strategy: str
    fastest: bool
    ratio: Ratio | None
    costs: tuple[float, ...]
    wall: float
    requests_per_second: float
    p50: float | None
    p99: float | None
    overhead: float | None
    errors: dict[str, int]
    connections: float
    cpu_per_request: float
    peak_rss_bytes: float
    concurrency: int
    verdict: str


@dataclass(frozen=True)
class Group:
    """The strategies on one way to one upstream with one workload, the fastest first."""

    workload: str
    upstream: str
    route: str
    rows: list[Row]
    requests: int | None  # of each trial; None where it is a duration that ends it

    @property
    def title(self) -> str:
        return f"{self.workload} · {self.upstream} upstream · {self.route}"


def groups_of(run: Run) -> list[Group]:
    """All groups of a run, in the experiment's order; strategies without a finished trial are left out."""
    done = [trial for trial in run.trials if trial.status == "done"]
    ranked = standings(_figures(trial) for trial in done)
    order = {(arm.workload, arm.upstream, arm.route): None for arm in run.experiment.arms}
    return [
        Group(
            *group,
            [_row(standing, _of(done, group, standing)) for standing in ranked[group]],
            run.experiment.workloads[group[0]].requests,
        )
        for group in order
        if group in ranked
    ]


def _figures(trial: Trial) -> Figures:
    group = (trial.workload, trial.upstream, trial.route)
    return Figures(trial.strategy, group, trial.round, _seconds_a_request(trial), sum(trial.errors.values()))


def _seconds_a_request(trial: Trial) -> float:
    return (trial.wall_seconds or 0.0) / (trial.requests - sum(trial.errors.values()))


def _of(trials: list[Trial], group: tuple[str, str, str], standing: Standing) -> list[Trial]:
    return [
        trial
        for trial in trials
        if (trial.workload, trial.upstream, trial.route) == group and trial.strategy == standing.strategy
    ]


def _row(standing: Standing, trials: list[Trial]) -> Row:
    latencies = [trial.latency_seconds for trial in trials if trial.latency_seconds]
    overheads = [trial.overhead_seconds.p50 for trial in trials if trial.overhead_seconds]
    errors: dict[str, int] = {}
    for trial in trials:
        for kind, count in trial.errors.items():
            errors[kind] = errors.get(kind, 0) + count
    return Row(
        strategy=standing.strategy,
        fastest=standing.fastest,
        ratio=standing.ratio,
        costs=tuple(map(_seconds_a_request, trials)),
        wall=_median(trials, lambda trial: trial.wall_seconds or 0.0),
        requests_per_second=_median(trials, lambda trial: trial.requests_per_second or 0.0),
        p50=median(latency.p50 for latency in latencies) if latencies else None,
        p99=median(latency.p99 for latency in latencies) if latencies else None,
        overhead=median(overheads) if overheads else None,
        errors=errors,
        connections=_median(trials, lambda trial: trial.connections_opened or 0),
        cpu_per_request=_median(trials, lambda trial: (trial.cpu_seconds or 0.0) / max(1, trial.requests)),
        peak_rss_bytes=_median(trials, lambda trial: trial.peak_rss_bytes or 0),
        concurrency=trials[0].concurrency,
        verdict=_commonest([trial.verdict or "unclear" for trial in trials]),
    )


def _median(trials: list[Trial], figure: Callable[[Trial], float]) -> float:
    return float(median(figure(trial) for trial in trials))


def _commonest(words: list[str]) -> str:
    return max(dict.fromkeys(words), key=words.count)
