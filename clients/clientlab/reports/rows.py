"""A run as groups of rows, one row per arm: the data of tables and charts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from clientlab import units
from clientlab.analysis.ratios import Estimate, Ratio, typical_figure
from clientlab.analysis.simultaneous import Comparisons
from clientlab.judging.cautions import REORDERING, commonest_verdict
from clientlab.judging.find_max import typical_rate
from clientlab.judging.ranking import (
    ArmKey,
    GroupKey,
    OfferedLoad,
    Standing,
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

WAITS = "*"
"""Marks latencies that include the wait for a free connection. A caution explains it."""

_LARGE_BODY = 1 << 20
_THROUGHPUT = BY_KEY["throughput"]
_FURTHER = (BY_KEY["p99"], BY_KEY["cpu"])

_PARTS = {"client": "client", "link": "link", "proxy": "proxy", "upstream": "upstream", "latency": "delays"}
"""Busy shares that are always shown, with their names."""

_DECIDING = {"client-connections": "connections", "client-streams": "streams", "client-lock": "waiting"}
"""Verdict to the share that led to it, if its name does not say so."""


@dataclass(frozen=True)
class Row:
    """An arm with its figures over the rounds.

    `fastest`: of the arms with its `load`; `alone`: no other arm of the group has that load. `ratio`: to the fastest
    arm with its load, `ratios`: the same of further figures. `figures`: key to value; those that have ratios agree with
    them. `bounds`: keys of figures that are only lower bounds, because requests failed. `level`: typical seconds of
    what arms are ranked by, `costs`: the same of each round. `verdict`: the commonest, `shares`: median busy shares of
    the trials with it. `waits`: latencies include the wait for a free connection. `doubtful`: by a caution.
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
    def rate(self) -> float | None:
        """Planned requests per second of an open load."""
        return None if self.load[1] is None else self.load[1][0]

    @property
    def load_parts(self) -> tuple[str, str, str]:
        """Concurrency, rate and stages in words; empty if there are none."""
        rate, stages = self.load[1] or (None, None)
        return f"c={self.concurrency}", "" if rate is None else f"{units.rate(rate)}/s", str(stages or "")

    @property
    def first(self) -> bool:
        """Whether it is the fastest of several arms, or the only arm of its group."""
        return self.fastest and not self.alone

    @property
    def shortfall(self) -> str | None:
        """Why it is not ranked; None if it is."""
        return shortfall(self.trials)

    @property
    def bottleneck(self) -> str:
        """The verdict in words."""
        special = {"on-schedule": "none, on schedule", "start-up": "start of the pool", None: units.UNKNOWN}
        if self.verdict == "client-bound" and self.shares.get("machine", 0.0) >= FULL:
            return "client, full machine"  # on a larger machine it might do more
        return special.get(self.verdict) or str(self.verdict).removesuffix("-bound").replace("-", " ")

    def text(self, figure: Figure) -> str:
        """Return the figure as reports show it: the highest rate with its interval, errors by kind."""
        value = self.figures[figure.key]
        if figure.key == "errors" and self.errors:
            return ", ".join(f"{count:,} {kind}" for kind, count in self.errors.items())
        if figure is HIGHEST_RATE and value is not None and (rate := typical_rate(self.trials)) is not None:
            return units.ratio_of(rate.with_value(value))
        holds_waits = figure.bounded is not None and not figure.before_send and value is not None
        return figure.text(value, at_least=figure.key in self.bounds) + (WAITS if self.waits and holds_waits else "")


@dataclass(frozen=True)
class Group:
    """The arms with one workload, upstream, route and link: those of equal load together, the fastest first.

    `requests`: of each trial; None if a duration ends it, or if it varies. `large_bodies`: of 1 MiB or more.
    `baseline`: name of the row that others are compared with.
    """

    key: GroupKey
    rows: list[Row]
    requests: int | None
    large_bodies: bool = False
    baseline: str | None = None

    @property
    def title(self) -> str:
        return self.key.title

    @property
    def open_load(self) -> bool:
        """Whether requests arrive by a schedule."""
        return any(row.rate is not None for row in self.rows)

    @property
    def searched(self) -> bool:
        """Whether arms are compared by the highest rate that each held."""
        return any(row.figures[HIGHEST_RATE.key] is not None for row in self.rows)

    @property
    def by_load(self) -> list[list[Row]]:
        """The rows of each load; arms are compared only within these."""
        found: dict[OfferedLoad, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.load, []).append(row)
        return list(found.values())

    @property
    def mixed(self) -> bool:
        """Whether arms differ in concurrency or in their rates."""
        return len(self.by_load) > 1

    def shows(self, figure: Figure, when: When) -> bool:
        """Return whether a figure that reports show in that case is shown for this group."""
        if when == "large bodies":
            return self.large_bodies
        if when == "durations":
            return self.requests is None
        return when == "always" or any(row.figures[figure.key] is not None for row in self.rows)

    def place_of(self, row: Row) -> str:
        """Return what distinguishes the arm's load from others of the group: ``c=32``, ``200/s``, stages."""
        loads = [set(parts) for parts in zip(*(one.load_parts for one in self.rows), strict=True)]
        return ", ".join(part for part, found in zip(row.load_parts, loads, strict=True) if part and len(found) > 1)

    def name_of(self, row: Row) -> str:
        """Return the arm's name, with its load if arms of the group differ in it."""
        return f"{row.name} ({self.place_of(row)})" if self.mixed else row.name


def bottleneck_shares(verdict: str | None, shares: Mapping[str, float]) -> str:
    """Return the busy shares, the one that decided first: ``client connections 99 %, delays 12 %``."""
    parts = sorted(((shares[part], name) for part, name in _PARTS.items() if part in shares), reverse=True)
    words = str(verdict).removesuffix("-bound")
    for deciding in (_DECIDING.get(words, ""), words.replace("-", "_"), words.replace("-", "")):
        if deciding in shares and deciding not in _PARTS:
            parts.insert(0, (shares[deciding], words.replace("-", " ")))
            break
    return ", ".join(f"{name} {100 * share:.0f} %" for share, name in parts) or units.UNKNOWN


def further_figures(*, open_load: bool) -> list[Figure]:
    """Return the figures that have ratios beside the one that ranks the arms."""
    return [figure for figure in _FURTHER if figure is not ranked_by(open_load=open_load)]


def groups_of(run: Run) -> list[Group]:
    """Return all groups of a run, in the experiment's order, without arms that have no finished trial."""
    trials_of_groups = finished_by_group(run)
    further = {figure.key: compared_by(run, figure) for figure in _FURTHER}
    within, baseline = baseline_of(run) or (None, None)
    groups = []
    for key, standings in ranked(run).items():
        workloads = [run.experiment.workloads[trial.workload] for _, trial in trials_of_groups[key]]
        counts = {workload.requests for workload in workloads}
        bodies = [(trial.bytes_received or 0) / max(1, trial.requests) for _, trial in trials_of_groups[key]]
        by_name: dict[str, list[Trial]] = {}
        for name, trial in sorted(trials_of_groups[key], key=lambda named: named[1].round):
            by_name.setdefault(name, []).append(trial)
        groups.append(
            Group(
                key,
                _rows(run, key, standings, by_name, further),
                counts.pop() if len(counts) == 1 else None,
                max(*bodies, *(workload.upload_size or 0 for workload in workloads)) >= _LARGE_BODY,
                baseline if key == within and baseline in by_name else None,
            )
        )
    return groups


def _rows(
    run: Run,
    group: GroupKey,
    standings: Sequence[Standing],
    by_name: Mapping[str, Sequence[Trial]],
    further: Mapping[str, Mapping[ArmKey, Comparisons]],
) -> list[Row]:
    """Return the rows of a group. `further`: key of a further figure to the comparisons of each arm."""
    loads = {name: load_of(run, trials[0]) for name, trials in by_name.items()}
    arms_of_load = Counter(loads.values())
    doubtful = {arm for caution in run.cautions if caution.kind in REORDERING for arm in caution.arms}
    medians = {one.name: figures_at(by_name[one.name], one.level) for one in standings}
    rows = []
    for one in standings:
        trials, load, best = by_name[one.name], loads[one.name], medians[one.reference]
        ratios = {
            figure.key: ratio
            for figure in further_figures(open_load=load[1] is not None)
            if (found := further[figure.key].get((group, one.name))) and (ratio := found.ratio(one.name, one.reference))
        }
        shown = {key: of_best * ratio.value for key, ratio in ratios.items() if (of_best := best[key])}
        verdict = commonest_verdict(trials)
        busy = [trial.busy for trial in trials if trial.verdict == verdict]
        rows.append(
            Row(
                name=one.name,
                strategy=trials[0].strategy,
                fastest=one.fastest,
                ratio=one.ratio,
                to_baseline=one.to_baseline,
                costs=tuple(map(cost_of, trials)),
                level=one.level,
                figures=medians[one.name] | shown,
                errors=dict(sum((Counter(trial.errors) for trial in trials), Counter[str]())),
                concurrency=trials[0].concurrency,
                verdict=verdict,
                waits=any(trial.waits_for_connection for trial in trials),
                shares={part: float(median(one[part] for one in busy if part in one)) for one in busy for part in one},
                trials=tuple(trials),
                bounds=frozenset(figure.key for figure in FIGURES if figure.is_bound(trials)),
                alone=len(arms_of_load) > 1 and arms_of_load[load] == 1,
                doubtful=trials[0].arm in doubtful,
                load=load,
                ratios=ratios,
            )
        )
    return rows


def figures_at(trials: Sequence[Trial], level: float) -> dict[str, float | None]:
    """Return each figure's median over the rounds; figures that follow from the ranking are those of `level`."""
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


def speed_of(trials: Iterable[Trial]) -> Estimate | None:
    """Return an arm's median of successful requests per second with its 95 % interval; None if none succeeded."""
    rates = {trial.round: rate for trial in trials for rate in _THROUGHPUT.values([trial]) if rate > 0}
    if (found := typical_figure(rates)) is None:
        return None
    value = float(median(rates.values()))
    low, high = found.interval or (None, None)
    return Estimate(value, low and min(low, value), high and max(high, value))
