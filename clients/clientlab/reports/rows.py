"""A run as groups of rows, one row per arm, with its bottleneck: the data of tables and charts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from types import MappingProxyType

from clientlab import units
from clientlab.analysis.ratios import Estimate, Ratio, typical_figure
from clientlab.analysis.standings import Comparisons, GroupKey, Schedule, Standing
from clientlab.judging.cautions import REORDERING
from clientlab.judging.cautions.trials import commonest_verdict
from clientlab.judging.find_max import typical_rate
from clientlab.judging.ranking import (
    ArmKey,
    OfferedLoad,
    baseline_of,
    compared_by,
    finished_by_group,
    load_of,
    ranked,
    shortfall,
)
from clientlab.judging.verdict import FULL
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure, When
from clientlab.results.figures import BY_KEY, FIGURES, HIGHEST_RATE, cost_of, ranked_by
from clientlab.results.trial import Trial

_NAMES = {
    "client-bound": "client",
    "proxy-bound": "proxy",
    "upstream-bound": "upstream",
    "link-bound": "link's process",
    "bandwidth-bound": "link's bandwidth",
    "latency-bound": "latency",
    "client-connections": "client's connections",
    "client-streams": "HTTP/2 streams",
    "client-lock": "client's lock",
    "upstream-threads": "upstream's threads",
    "start-up": "start of the pool",
    "on-schedule": "none, on schedule",
    "behind-schedule": "behind schedule",
}
"""Verdicts whose name in reports differs."""

_PARTS = {
    "client": "client",
    "link": "link",
    "proxy": "proxy",
    "upstream": "upstream",
    "latency": "delays",
}
"""Shares that are always shown where they are known."""

_DECIDING = {
    "bandwidth-bound": ("bandwidth", "bandwidth"),
    "client-connections": ("connections", "connections"),
    "client-streams": ("streams", "streams"),
    "client-lock": ("waiting", "waiting in the client"),
    "upstream-threads": ("upstream_threads", "threads"),
    "machine": ("machine", "machine"),
    "outside": ("outside", "outside"),
    "start-up": ("startup", "start"),
    "unaccounted": ("unaccounted", "unaccounted"),
}
"""Verdict → the further share that led to it, and its name."""


def bottleneck_name(verdict: str | None, shares: Mapping[str, float] = MappingProxyType({})) -> str:
    """The verdict in a table. A client that was full on a full machine might do more on another machine."""
    if verdict is None:
        return units.UNKNOWN
    beside = ", full machine" if verdict == "client-bound" and shares.get("machine", 0.0) >= FULL else ""
    return f"{_NAMES.get(verdict, verdict)}{beside}"


def shares_of(trials: Iterable[Trial]) -> dict[str, float]:
    """Median of each busy share over the trials that have it."""
    found: dict[str, list[float]] = {}
    for trial in trials:
        for part, share in trial.busy.items():
            found.setdefault(part, []).append(share)
    return {part: float(median(shares)) for part, shares in found.items()}


def bottleneck_shares(verdict: str | None, shares: Mapping[str, float]) -> str:
    """The shares behind a verdict, the one that decided first: ``threads 99 %, delays 12 %, upstream 9 %``."""
    parts = sorted(((shares[part], name) for part, name in _PARTS.items() if part in shares), reverse=True)
    deciding, name = _DECIDING.get(verdict or "", ("", ""))
    if deciding in shares:
        parts.insert(0, (shares[deciding], name))
    return ", ".join(f"{name} {100 * share:.0f} %" for share, name in parts) or units.UNKNOWN


_FURTHER = (BY_KEY["p99"], BY_KEY["cpu"])


def further_figures(*, open_load: bool) -> list[Figure]:
    """Return the figures that have ratios beside the one by which arms are ranked."""
    return [figure for figure in _FURTHER if figure is not ranked_by(open_load=open_load)]


LARGE_BODY = 1 << 20
_THROUGHPUT = BY_KEY["throughput"]

WAITS = "*"
"""Marks latencies that hold the wait for a free connection. A caution explains it."""


@dataclass(frozen=True)
class Row:
    """An arm with its figures over the rounds.

    `name`: the arm's name within its group. `fastest`: of the arms with its `load`
    (`judging.ranking`). `ratio`: to that arm, `to_baseline`: to the experiment's baseline.
    `ratios`: key of a further figure → its ratio to the fastest arm, where that is known.
    `figures`: key → the figure over the rounds, or None; those with ratios, or that follow from `level`, agree with it.
    `level`: typical seconds of what arms are ranked by. `bounds`: keys of those that are only lower
    bounds, because requests failed. `costs`: the seconds that the arm is ranked by, by
    round. `errors`: kind → how many, summed. `body_bytes`: received per request. `verdict`: the commonest of the
    trials' verdicts, or None. `waits`: whether latencies hold the wait for a free connection. `shares`: part → median
    of its busy share, of the trials with that verdict. `trials`: by round. `alone`: the arm has a load that no
    other arm of its group has, so it is ranked against none of them. `doubtful`: by a caution about this arm, the
    ranking might be another.
    """

    name: str
    strategy: str
    fastest: bool
    ratio: Ratio | None
    to_baseline: Ratio | None
    costs: tuple[float, ...]
    level: float
    figures: Mapping[str, float | None]
    errors: dict[str, int]
    body_bytes: float | None
    concurrency: int
    verdict: str | None
    waits: bool
    shares: Mapping[str, float]
    trials: tuple[Trial, ...]
    bounds: frozenset[str] = frozenset()
    alone: bool = False
    doubtful: bool = False
    load: OfferedLoad = (1, None)
    ratios: Mapping[str, Ratio] = field(default_factory=dict)

    @property
    def schedule(self) -> Schedule | None:
        """The rate of an open load, and its stages if it has several."""
        return self.load[1]

    @property
    def rate(self) -> float | None:
        """Planned requests per second of an open load."""
        return None if self.schedule is None else self.schedule[0]

    @property
    def first(self) -> bool:
        """Whether it is the fastest of several arms that are compared with each other, or the only arm of its group."""
        return self.fastest and not self.alone

    @property
    def shortfall(self) -> str | None:
        """Why it is not ranked; None if it is."""
        return shortfall(self.trials)

    @property
    def marked(self) -> str:
        """The name, with the mark of cautions behind that of a doubtful arm."""
        return f"{self.name} !" if self.doubtful else self.name

    @property
    def mark(self) -> str:
        """The mark of its latencies."""
        return WAITS if self.waits else ""

    def text(self, figure: Figure) -> str:
        """The figure as reports show it; the highest rate with its interval."""
        value = self.figures[figure.key]
        if figure is HIGHEST_RATE and value is not None and (rate := typical_rate(self.trials)) is not None:
            return units.ratio_of(rate.with_value(value))
        holds_waits = figure.bounded is not None and not figure.before_send
        mark = self.mark if holds_waits and value is not None else ""
        return f"{figure.text(value, at_least=figure.key in self.bounds)}{mark}"


@dataclass(frozen=True)
class Group:
    """The arms with one workload, upstream, route and link: those of equal concurrency together, the fastest first.

    `requests`: of each trial; None if a duration ends it, or if it is an axis. `upload_size`: bytes of generated
    uploads, per request. `baseline`: name of the row that others are compared with.
    """

    key: GroupKey
    rows: list[Row]
    requests: int | None
    upload_size: int = 0
    baseline: str | None = None

    @property
    def open_load(self) -> bool:
        """Whether its requests arrive by a schedule."""
        return any(row.rate is not None for row in self.rows)

    @property
    def searched(self) -> bool:
        """Whether its arms are compared by the highest rate that each held."""
        return any(row.figures[HIGHEST_RATE.key] is not None for row in self.rows)

    @property
    def large(self) -> bool:
        """Whether bodies are so large that they matter for the memory of a trial."""
        received = [row.body_bytes for row in self.rows if row.body_bytes is not None]
        return max([self.upload_size, *received]) >= LARGE_BODY

    def shows(self, figure: Figure, when: When) -> bool:
        """Whether a figure that reports show in that case is shown for this group."""
        if when == "large bodies":
            return self.large
        if when == "durations":
            return self.requests is None
        return when == "always" or any(row.figures[figure.key] is not None for row in self.rows)

    @property
    def by_load(self) -> list[list[Row]]:
        """The rows of each load: arms are compared within these only."""
        found: dict[OfferedLoad, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.load, []).append(row)
        return list(found.values())

    @property
    def mixed(self) -> bool:
        """Whether arms have unlike concurrency, or unlike rates."""
        return len({row.load for row in self.rows}) > 1

    def place_of(self, row: Row) -> str:
        """The part of the arm's load in which arms of the group differ: ``c=32``, ``200/s``, stages."""
        parts = [f"c={row.concurrency}"] if len({one.concurrency for one in self.rows}) > 1 else []
        if row.rate is not None and len({one.rate for one in self.rows}) > 1:
            parts.append(f"{units.rate(row.rate)}/s")
        stages = {one.schedule and one.schedule[1] for one in self.rows}
        if row.schedule is not None and row.schedule[1] is not None and len(stages) > 1:
            parts.append(str(row.schedule[1]))
        return ", ".join(parts)

    def name_of(self, row: Row) -> str:
        """The arm's name, with its load where arms of the group differ in it."""
        return f"{row.name} ({self.place_of(row)})" if self.mixed else row.name

    @property
    def title(self) -> str:
        return self.key.title


def groups_of(run: Run) -> list[Group]:
    """All groups of a run, in the experiment's order, without arms that have no finished trial."""
    standings, trials = ranked(run), finished_by_group(run)
    further = {figure.key: compared_by(run, figure) for figure in _FURTHER}
    within, baseline = baseline_of(run) or (None, None)
    return [
        Group(
            group,
            _rows(run, group, rows, trials[group], further),
            _requests(run, [trial for _, trial in trials[group]]),
            _upload(run, [trial for _, trial in trials[group]]),
            baseline if group == within and any(standing.name == baseline for standing in rows) else None,
        )
        for group, rows in standings.items()
    ]


def _requests(run: Run, trials: list[Trial]) -> int | None:
    """The requests of each trial of a group, if all have the same number."""
    counts = {run.experiment.workloads[trial.workload].requests for trial in trials}
    return counts.pop() if len(counts) == 1 else None


def _upload(run: Run, trials: list[Trial]) -> int:
    """The largest generated upload of a group's requests, in bytes."""
    return max(run.experiment.workloads[trial.workload].upload_size or 0 for trial in trials)


def _rows(
    run: Run,
    group: GroupKey,
    standings: list[Standing],
    trials: list[tuple[str, Trial]],
    further: Mapping[str, Mapping[ArmKey, Comparisons]],
) -> list[Row]:
    by_name = {one.name: [trial for name, trial in trials if name == one.name] for one in standings}
    of_arms = {name: load_of(run, found[0]) for name, found in by_name.items()}
    loads = Counter(of_arms.values())
    marked = {arm for caution in run.cautions if caution.kind in REORDERING for arm in caution.arms}
    rows = [
        _row(
            one,
            by_name[one.name],
            load := of_arms[one.name],
            alone=len(loads) > 1 and loads[load] == 1,
            doubtful=by_name[one.name][0].arm in marked,
        )
        for one in standings
    ]
    found = {row.name: row for row in rows}
    return [
        _with_further(row, found[one.reference], {key: of.get((group, one.name)) for key, of in further.items()})
        for row, one in zip(rows, standings, strict=True)
    ]


def _with_further(row: Row, best: Row, compared: Mapping[str, Comparisons | None]) -> Row:
    """The row with the ratios of its further figures, which are shown at these ratios to those of the fastest arm."""
    ratios = {
        figure.key: ratio
        for figure in further_figures(open_load=row.rate is not None)
        if (found := compared[figure.key]) is not None and (ratio := found.ratio(row.name, best.name)) is not None
    }
    shown = {key: of_best * ratio.value for key, ratio in ratios.items() if (of_best := best.figures[key])}
    return replace(row, ratios=ratios, figures={**row.figures, **shown})


def _row(standing: Standing, trials: list[Trial], load: OfferedLoad, *, alone: bool, doubtful: bool) -> Row:
    errors: Counter[str] = Counter()
    for trial in trials:
        errors.update(trial.errors)
    verdict = commonest_verdict(trials)
    return Row(
        name=standing.name,
        strategy=trials[0].strategy,
        fastest=standing.fastest,
        ratio=standing.ratio,
        to_baseline=standing.to_baseline,
        costs=tuple(map(cost_of, trials)),
        level=standing.level,
        figures=figures_at(trials, standing.level),
        errors=dict(errors),
        body_bytes=_body_bytes(trials),
        concurrency=trials[0].concurrency,
        verdict=verdict,
        waits=any(trial.waits_for_connection for trial in trials),
        shares=shares_of(trial for trial in trials if trial.verdict == verdict),
        trials=tuple(sorted(trials, key=lambda trial: trial.round)),
        bounds=frozenset(figure.key for figure in FIGURES if figure.is_bound(trials)),
        alone=alone,
        doubtful=doubtful,
        load=load,
    )


def figures_at(trials: Sequence[Trial], level: float) -> dict[str, float | None]:
    """Key → median over the rounds; of figures that follow from what the arm is ranked by, that of its level."""
    found = {figure.key: figure.over_rounds(trials) for figure in FIGURES}
    if found[HIGHEST_RATE.key] is not None:
        return found | {HIGHEST_RATE.key: 1 / level}
    open_load = any(trial.open_load is not None for trial in trials)
    ranking = ranked_by(open_load=open_load)
    typical = ranking.over_rounds(trials)
    if not typical or not math.isfinite(level) or level <= 0 or ranking.has_bounds(trials):
        return found
    if open_load:
        return found | {ranking.key: level}
    following = {"throughput": 1 / level} if len(_THROUGHPUT.values(trials)) == len(trials) else {}
    if found["received"]:
        following["received"] = found["received"] * typical / level
    if found["wall"] and not any(one.tail_seconds or one.errors for one in trials):
        following["wall"] = found["wall"] * level / typical
    return found | following


def _body_bytes(trials: list[Trial]) -> float | None:
    known = [trial.bytes_received / trial.requests for trial in trials if trial.bytes_received is not None]
    return median(known) if known else None


def speed_of(trials: Iterable[Trial]) -> Estimate | None:
    """Successful requests per second of an arm: the median over its finished trials.

    None without a trial that had a successful request. The interval is the 95 % confidence interval of that median;
    with fewer than three rounds there is none.
    """
    rates = {trial.round: rate for trial in trials for rate in _THROUGHPUT.values([trial]) if rate > 0}
    found = typical_figure(rates)
    if found is None:
        return None
    value = float(median(rates.values()))
    if found.low is None or found.high is None:
        return Estimate(value, None, None)
    return Estimate(value, min(found.low, value), max(found.high, value))
