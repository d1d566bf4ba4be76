"""A run as rows, an arm each: what the table, the chart and the answer are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from clientlab.analysis.ratios import Ratio
from clientlab.analysis.standings import Standing
from clientlab.runs.document import Run, Trial
from clientlab.runs.ranking import baseline_of, placed, ranked, seconds_a_request

LARGE_BODY = 1 << 20


@dataclass(frozen=True)
class Row:
    """An arm's medians over its rounds.

    `name`: what it is called in its group; `ratio`: to the fastest, `to_baseline`: to the experiment's baseline.
    `costs`: seconds for a successful request, by round; `errors` are summed. `body_bytes`: received for a request.
    `elapsed`: the library's own seconds, summed over a trial. `trials`: by round.
    """

    name: str
    strategy: str
    fastest: bool
    ratio: Ratio | None
    to_baseline: Ratio | None
    costs: tuple[float, ...]
    wall: float
    requests_per_second: float
    p50: float | None
    p99: float | None
    overhead: float | None
    errors: dict[str, int]
    connections: float
    cpu_per_request: float
    peak_rss_bytes: float | None
    above_idle_bytes: float | None
    body_bytes: float
    elapsed: float | None
    concurrency: int
    verdict: str
    trials: tuple[Trial, ...]


@dataclass(frozen=True)
class Group:
    """The arms on one way to one upstream with one workload, the fastest first."""

    workload: str
    upstream: str
    route: str
    rows: list[Row]
    requests: int | None  # of each trial; None where it is a duration that ends it, or an axis
    upload_size: int = 0  # bytes that each request sends, where they are generated
    baseline: str | None = None  # the row that others are measured by

    @property
    def large(self) -> bool:
        """Whether bodies are so large that they are seen in the memory of a trial."""
        return max([self.upload_size, *(row.body_bytes for row in self.rows)]) >= LARGE_BODY

    @property
    def title(self) -> str:
        return f"{self.workload} · {self.upstream} upstream · {self.route}"


def groups_of(run: Run) -> list[Group]:
    """All groups of a run, in the experiment's order; arms without a finished trial are left out."""
    standings, trials = ranked(run), placed(run)
    within, baseline = baseline_of(run) or (None, None)
    return [
        Group(
            *group,
            [_row(standing, [t for name, t in trials[group] if name == standing.name]) for standing in rows],
            _requests(run, [trial for _, trial in trials[group]]),
            _upload(run, [trial for _, trial in trials[group]]),
            baseline if group == within and any(standing.name == baseline for standing in rows) else None,
        )
        for group, rows in standings.items()
    ]


def _requests(run: Run, trials: list[Trial]) -> int | None:
    """The requests of each trial of a group, where all have as many."""
    counts = {run.experiment.workloads[trial.workload].requests for trial in trials}
    return counts.pop() if len(counts) == 1 else None


def _upload(run: Run, trials: list[Trial]) -> int:
    """Bytes that each request of a group sends at the most, where they are generated."""
    return max(run.experiment.workloads[trial.workload].upload_size or 0 for trial in trials)


def _row(standing: Standing, trials: list[Trial]) -> Row:
    latencies = [trial.latency_seconds for trial in trials if trial.latency_seconds]
    overheads = [trial.overhead_seconds.p50 for trial in trials if trial.overhead_seconds]
    errors: dict[str, int] = {}
    for trial in trials:
        for kind, count in trial.errors.items():
            errors[kind] = errors.get(kind, 0) + count
    return Row(
        name=standing.name,
        strategy=trials[0].strategy,
        fastest=standing.fastest,
        ratio=standing.ratio,
        to_baseline=standing.to_baseline,
        costs=tuple(map(seconds_a_request, trials)),
        wall=_median(trials, lambda trial: trial.wall_seconds or 0.0),
        requests_per_second=_median(trials, lambda trial: trial.requests_per_second or 0.0),
        p50=median(latency.p50 for latency in latencies) if latencies else None,
        p99=median(latency.p99 for latency in latencies) if latencies else None,
        overhead=median(overheads) if overheads else None,
        errors=errors,
        connections=_median(trials, lambda trial: trial.connections_opened or 0),
        cpu_per_request=_median(trials, lambda trial: (trial.cpu_seconds or 0.0) / max(1, trial.requests)),
        peak_rss_bytes=_known(trials, lambda trial: trial.peak_rss_bytes),
        above_idle_bytes=_known(trials, above_idle),
        body_bytes=_median(trials, lambda trial: trial.bytes_received / max(1, trial.requests)),
        elapsed=_known(trials, lambda trial: trial.elapsed_seconds_sum),
        concurrency=trials[0].concurrency,
        verdict=_commonest([trial.verdict or "unclear" for trial in trials]),
        trials=tuple(sorted(trials, key=lambda trial: trial.round)),
    )


def _median(trials: list[Trial], figure: Callable[[Trial], float]) -> float:
    return float(median(figure(trial) for trial in trials))


def _known(trials: list[Trial], figure: Callable[[Trial], float | None]) -> float | None:
    """The median of those trials that have the figure; None where none has."""
    found = [value for trial in trials if (value := figure(trial)) is not None]
    return float(median(found)) if found else None


def above_idle(trial: Trial) -> float | None:
    """Bytes of its peak of memory beyond what it had before the measured part; None where either is not known."""
    if trial.peak_rss_bytes is None or trial.idle_rss_bytes is None:
        return None
    return max(0, trial.peak_rss_bytes - trial.idle_rss_bytes)


def _commonest(words: list[str]) -> str:
    return max(dict.fromkeys(words), key=words.count)
