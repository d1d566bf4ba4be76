"""A run as tables: groups of arms that are compared with each other, with a row per arm
and a column per figure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

import numpy as np

from clientlab import units
from clientlab.judging import ranking
from clientlab.judging.cautions import REORDERING, commonest_verdict
from clientlab.judging.find_max import typical_rate
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.sections import DataTable
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY, FIGURES, HIGHEST_RATE, Figure, ranked_by
from clientlab.running.schedule import find_first_look
from clientlab.statistics.histogram import (
    Distribution,
    decode_histogram,
    merge_distributions,
)
from clientlab.statistics.ratios import Estimate, Ratio, typical_figure
from clientlab.statistics.simultaneous import Comparisons
from clientlab.trial.bottleneck import FULL
from clientlab.trial.result import PlannedTrial, Trial

# Marks latencies that include the wait for a free connection; a caution explains it.
WAITS = "*"
_LARGE_BODY = 1 << 20
_MOST_COLUMNS = 10  # the most columns of a table's short form
_THROUGHPUT, _FIRST_RESPONSE, _TIME = (
    BY_KEY["throughput"],
    BY_KEY["first_response"],
    BY_KEY["time_per_request"],
)
_P99 = BY_KEY["p99"]
_CPU = BY_KEY["cpu"]
_FURTHER = (_CPU, BY_KEY["p50"], _P99, BY_KEY["first_event_p50"])
"""Figures that have ratios beside the one that ranks the arms."""

_PARTS = {
    "client": "client",
    "link": "link",
    "proxy": "proxy",
    "upstream": "upstream",
    "latency": "delays",
}
"""Busy shares that are always shown, with their names."""
_DECIDING = {
    "client-connections": "connections",
    "client-streams": "streams",
    "client-lock": "waiting",
}
"""Verdict → the share that led to it, if they have different names."""


@dataclass(frozen=True, kw_only=True)
class Row(ranking.Standing):
    """An arm with its standing in its group and its figures over the rounds.

    `figures`: by key; those with a ratio agree with it, except for quantiles. `ratios`:
    of further figures, to the fastest arm with the same `load`. `compared_by`: further
    figures with all arms of that load. `alone`: no other arm of the group has that
    load. `doubtful`: a caution says that its place may be wrong. `stopped`: its rounds
    ended once their comparisons were decided, after several looks. So they show rather
    too large a difference.
    """

    trials: Sequence[Trial]
    load: ranking.OfferedLoad
    figures: Mapping[str, float | None]
    ratios: Mapping[str, Ratio]
    compared_by: Mapping[str, Comparisons]
    alone: bool
    doubtful: bool
    stopped: bool = False

    @property
    def quoted_ratio(self) -> str:
        """The ratio with its interval, or its lower end if the rounds were stopped."""
        if (
            self.stopped
            and self.ratio is not None
            and self.ratio.low is not None
            and self.ratio.low > 1
        ):
            return f"at least {units.ratio(self.ratio.low)}"
        return units.ratio_of(self.ratio)

    @property
    def planned(self) -> PlannedTrial:
        """The plan of the first trial, for what is the same in all of them."""
        return self.trials[0].planned

    @property
    def load_parts(self) -> tuple[str, str, str]:
        """Concurrency, rate and stages in words; empty if there are none."""
        rate = "" if self.load.rate is None else f"{units.rate(self.load.rate)}/s"
        return f"c={self.planned.concurrency}", rate, str(self.load.stages or "")

    @property
    def first(self) -> bool:
        """Whether it is the fastest of several arms, or the only arm of its group.

        No request failed.
        """
        return self.fastest and not self.alone and not self.errors

    @property
    def shortfall(self) -> str | None:
        """Why the arm is not ranked; None if it is."""
        return ranking.shortfall(self.trials) or self.unlike

    @property
    def errors(self) -> bool:
        """Whether requests failed in any round."""
        return any(trial.figures.errors for trial in self.trials)

    @cached_property
    def bounds(self) -> frozenset[str]:
        """Keys of the figures that are only lower bounds, because requests failed."""
        return frozenset(
            figure.key for figure in FIGURES if figure.is_bound(self.trials)
        )

    @cached_property
    def answered(self) -> Distribution | None:
        """Latencies of the successful requests of all rounds; None if they are unknown
        or none succeeded.
        """
        histograms = [
            trial.figures.histogram
            for trial in self.trials
            if trial.figures.histogram is not None
        ]
        found = [
            one
            for one in (
                decode_histogram(of.encoded, of.unit_seconds) for of in histograms
            )
            if one.total
        ]
        return merge_distributions(found) if found else None

    @property
    def answered_p99(self) -> float | None:
        """The p99 of the successful requests of all rounds if that of all requests is a
        lower bound.
        """
        if self.answered is None or _P99.key not in self.bounds:
            return None
        return float(self.answered.quantiles(np.array([0.99]))[0])

    @cached_property
    def waits(self) -> bool:
        return any(trial.figures.waits_for_connection for trial in self.trials)

    @cached_property
    def verdict(self) -> str | None:
        return commonest_verdict(self.trials)

    @cached_property
    def shares(self) -> dict[str, float]:
        """The median busy shares of the trials with the commonest verdict."""
        busy = [
            own.shares.known
            for trial in self.trials
            if (own := trial.verdict) and own.bound == self.verdict
        ]
        return {
            part: float(median(one[part] for one in busy if part in one))
            for one in busy
            for part in one
        }

    @property
    def ratio_text(self) -> str:
        """Its ratio to the fastest arm of its load, as tables show it."""
        if self.shortfall:
            return "not ranked"
        if self.fastest:
            return units.UNKNOWN if self.alone else "1"
        return units.ratio_of(self.ratio)

    @property
    def bottleneck(self) -> str:
        if self.verdict == "client-bound" and self.shares.get("machine", 0.0) >= FULL:
            return "client, full machine"  # on a larger machine it might do more
        special = {
            "on-schedule": "none, on schedule",
            "start-up": "start of the pool",
            None: units.UNKNOWN,
        }
        return special.get(self.verdict) or str(self.verdict).removesuffix(
            "-bound"
        ).replace("-", " ")

    def text(self, figure: Figure) -> str:
        """Return the figure as reports show it: the highest rate with its interval."""
        value = self.figures[figure.key]
        if (
            figure is HIGHEST_RATE
            and value is not None
            and (rate := typical_rate(self.trials)) is not None
        ):
            return units.ratio_of(rate.with_value(value))
        holds_waits = (
            figure.bounded is not None and not figure.before_send and value is not None
        )
        return figure.text(value, at_least=figure.key in self.bounds) + (
            WAITS if self.waits and holds_waits else ""
        )


@dataclass(frozen=True)
class Group:
    """The arms with one workload, upstream, route and link: those with equal load
    together, the fastest first.

    `requests`: per trial; None if a duration ends it, or if arms differ.
    `large_bodies`: of 1 MiB or more. `baseline`: name of the row that others are
    compared with.
    """

    title: str
    rows: list[Row]
    requests: int | None
    large_bodies: bool
    baseline: str | None

    @property
    def open_load(self) -> bool:
        return any(row.load.rate is not None for row in self.rows)

    @property
    def ranks_by(self) -> Figure:
        """The figure that arms are ranked by, unless the highest rate or a cold start
        decides.
        """
        return ranked_by(trial for row in self.rows for trial in row.trials)

    @property
    def searched(self) -> bool:
        """Whether arms are compared by the highest rate that each of them held."""
        return any(row.figures[HIGHEST_RATE.key] is not None for row in self.rows)

    @property
    def cold(self) -> bool:
        """Whether trials began with the start of the interpreter."""
        return any(row.figures[_FIRST_RESPONSE.key] is not None for row in self.rows)

    @property
    def leading(self) -> Figure:
        """The figure that tables show beside the ratios."""
        if self.cold:
            return _FIRST_RESPONSE
        if self.searched:
            return HIGHEST_RATE
        return _THROUGHPUT if self.ranks_by is _TIME else self.ranks_by

    @property
    def by_load(self) -> list[list[Row]]:
        """The rows of each load; arms are compared only within these."""
        loads = dict.fromkeys(row.load for row in self.rows)
        return [[row for row in self.rows if row.load == load] for load in loads]

    @property
    def mixed(self) -> bool:
        """Whether arms differ in concurrency or in their rates."""
        return len(self.by_load) > 1

    def shows(self, figure: Figure) -> bool:
        """Return whether reports show the figure for this group."""
        known = any(row.figures[figure.key] is not None for row in self.rows)
        cases = {
            "always": True,
            "known": known,
            "durations": self.requests is None,
            "large bodies": self.large_bodies,
        }
        return cases[figure.column.when if figure.column else "always"]

    def place_of(self, row: Row) -> str:
        """Return what distinguishes the arm's load from others of the group: ``c=32``,
        ``200/s``, stages.
        """
        loads = [
            set(parts)
            for parts in zip(*(one.load_parts for one in self.rows), strict=True)
        ]
        return ", ".join(
            part
            for part, found in zip(row.load_parts, loads, strict=True)
            if part and len(found) > 1
        )

    def name_of(self, row: Row) -> str:
        """Return the arm's name, with its load if arms of the group differ in it."""
        return f"{row.name} ({self.place_of(row)})" if self.mixed else row.name


@dataclass(frozen=True)
class Report:
    """A run with the user's thresholds and their outcomes (`judged`)."""

    run: Run
    judged: Sequence[ThresholdResult] = ()

    @cached_property
    def groups(self) -> list[Group]:
        return groups_of(self.run)


def groups_of(run: Run) -> list[Group]:
    """Return the groups of a run in the experiment's order, without arms that have no
    finished trial.
    """
    further = {figure: ranking.compare_by(run, figure) for figure in _FURTHER}
    doubtful = {
        arm
        for caution in run.cautions
        if caution.kind in REORDERING
        for arm in caution.arms
    }
    within, baseline = ranking.baseline_of(run) or (None, None)
    finished = ranking.finished_by_group(run)
    groups = []
    for key, standings in ranking.rank_arms(run).items():
        arms = finished[key].items()
        trials = {
            name: sorted(of_arm, key=lambda trial: trial.planned.round)
            for name, of_arm in arms
        }
        every = [trial for of_arm in trials.values() for trial in of_arm]
        workloads = [
            run.experiment.workloads[trial.planned.workload] for trial in every
        ]
        counts = {workload.requests for workload in workloads}
        bodies = [
            (trial.figures.bytes_received or 0) / max(1, trial.figures.requests)
            for trial in every
        ]
        largest = max(*bodies, *(workload.upload_size or 0 for workload in workloads))
        loads = {
            name: ranking.load_of(run, of_arm[0]) for name, of_arm in trials.items()
        }
        arms_with = Counter(loads.values())
        medians = {
            one.name: _figures_at(trials[one.name], one.level) for one in standings
        }
        rows = []
        for one in standings:
            load, best = loads[one.name], medians[one.reference]
            compared_by = {
                figure.key: found[key, one.name]
                for figure, found in further.items()
                if figure is not ranked_by(trials[one.name])
                and (key, one.name) in found
            }
            ratios = {
                name: ratio
                for name, compared in compared_by.items()
                if (ratio := compared.ratio(one.name, one.reference))
            }
            # Quantiles are medians of their rounds: otherwise, a p50 would be above the
            # p99 now and then.
            shown = {}
            if _CPU.key in ratios and (least := best[_CPU.key]):
                shown[_CPU.key] = least * ratios[_CPU.key].value
            rows.append(
                Row(
                    **vars(one),
                    trials=trials[one.name],
                    load=load,
                    figures=medians[one.name] | shown,
                    ratios=ratios,
                    compared_by=compared_by,
                    alone=len(arms_with) > 1 and arms_with[load] == 1,
                    doubtful=trials[one.name][0].planned.arm in doubtful,
                    stopped=run.decided.get(trials[one.name][0].planned.arm, 0)
                    > find_first_look(run.experiment),
                )
            )
        compared_with = baseline if key == within and baseline in trials else None
        requests = counts.pop() if len(counts) == 1 else None
        groups.append(
            Group(key.title, rows, requests, largest >= _LARGE_BODY, compared_with)
        )
    return groups


def _figures_at(trials: Sequence[Trial], level: float) -> dict[str, float | None]:
    """Return each figure's median over the rounds; figures that follow from the ranking
    are those at `level`.
    """
    found = {figure.key: figure.over_rounds(trials) for figure in FIGURES}
    if found[HIGHEST_RATE.key] is not None:
        return found | {HIGHEST_RATE.key: 1 / level}
    ranks_by = ranked_by(trials)
    typical = found[ranks_by.key]
    if (
        not typical
        or not math.isfinite(level)
        or level <= 0
        or ranks_by.has_bounds(trials)
    ):
        return found
    if ranks_by is _P99:
        return found
    if ranks_by is not _TIME:
        return found | {ranks_by.key: level}
    if len(_THROUGHPUT.values(trials)) == len(trials):
        found[_THROUGHPUT.key] = 1 / level
    if found["received"]:
        found["received"] *= typical / level
    for key in ("import", "first_response"):
        if value := found[key]:
            found[key] = value * level / typical
    if found["wall"] and not any(
        one.figures.tail_seconds or one.figures.errors for one in trials
    ):
        found["wall"] *= level / typical
    return found


def speed_of(trials: Iterable[Trial]) -> Estimate | None:
    """Return an arm's median of successful requests per second with its 95 % interval;
    None if none succeeded.
    """
    rates = {
        trial.planned.round: rate
        for trial in trials
        for rate in _THROUGHPUT.values([trial])
        if rate > 0
    }
    if (found := typical_figure(rates)) is None:
        return None
    value = float(median(rates.values()))
    low, high = found.interval or (None, None)
    return Estimate(value, low and min(low, value), high and max(high, value))


def bottleneck_shares(verdict: str | None, shares: Mapping[str, float]) -> str:
    """Return the busy shares, the one that decided first: ``client connections 99 %,
    delays 12 %``.
    """
    words = str(verdict).removesuffix("-bound")
    parts = sorted(
        ((shares[part], name) for part, name in _PARTS.items() if part in shares),
        reverse=True,
    )
    for deciding in (
        _DECIDING.get(words, ""),
        words.replace("-", "_"),
        words.replace("-", ""),
    ):
        if deciding in shares and deciding not in _PARTS:
            parts.insert(0, (shares[deciding], words.replace("-", " ")))
            break
    return (
        ", ".join(f"{name} {100 * share:.0f} %" for share, name in parts)
        or units.UNKNOWN
    )


def figure_table(group: Group) -> DataTable:
    """Return the table of a group, with a column for each figure that it has."""
    rows = group.rows
    keys, heads, cells = zip(*_columns(group), strict=True)
    places = {key: place for place, key in enumerate(keys, start=1)}
    deciding = [_THROUGHPUT.key]
    if group.searched:
        deciding = [HIGHEST_RATE.key]
    elif group.cold:
        deciding = [_FIRST_RESPONSE.key, "import", "first_event_p50"]
    elif group.ranks_by.needs == "stream":
        deciding = [
            group.ranks_by.key,
            "first_event_p50",
            "gap_p99",
            "lag_p50",
            "lag_p99",
            "together",
        ]
    elif group.open_load:
        deciding = [
            "p99",
            "achieved_rate",
            *(["dropped"] if any(row.figures["dropped"] for row in rows) else []),
        ]
    deciding += ["first_byte_p50", "first_byte_p99"]
    short = ["ratio", deciding[0], *(["c"] if group.mixed else [])]
    short += ["errors"] if any(row.errors for row in rows) else []
    short += deciding[1:]
    short += (
        ["baseline", "cpu"]
        if group.cold
        else ["p99", "cpu", "p50", "answered", "baseline", "received"]
    )
    brief = [places[key] for key in dict.fromkeys(short) if key in places][
        : _MOST_COLUMNS - 2
    ]
    return DataTable(
        (
            "strategy"
            if all(row.name == row.planned.strategy for row in rows)
            else "arm",
            *heads,
        ),
        [
            (f"{row.name} !" if row.doubtful else row.name, *line)
            for row, *line in zip(rows, *cells, strict=True)
        ],
        group.title
        if group.mixed
        else f"{group.title} · c={rows[0].planned.concurrency}",
        texts=[places[key] for key in ("bottleneck", "shares") if key in places],
        best=[index for index, row in enumerate(rows) if row.first],
        brief=[*brief, places["bottleneck"]],
    )


def _columns(group: Group) -> Iterator[tuple[str, str, list[str]]]:
    """Yield key, heading and cells of each column except the arms' names."""
    rows, ranks_by = group.rows, group.ranks_by
    yield "c", "c", [str(row.planned.concurrency) for row in rows]
    for figure in FIGURES:
        if figure.column is not None and group.shows(figure):
            yield figure.key, figure.column.heading, [row.text(figure) for row in rows]
            if figure is _P99 and any(row.answered_p99 for row in rows):
                yield (
                    "answered",
                    "p99 without errors",
                    [units.time(row.answered_p99) for row in rows],
                )
            if figure in _FURTHER and figure is not ranks_by and len(rows) > 1:
                best = _best_cells(rows)
                known = [
                    None if row.alone else row.ratios.get(figure.key) for row in rows
                ]
                ratios = [
                    best.get(row.name, units.ratio_of(one))
                    for row, one in zip(rows, known, strict=True)
                ]
                yield f"x {figure.key}", f"x {figure.column.heading} (95 %)", ratios
        if figure is group.leading:
            yield from _ratio_columns(group)
    yield "bottleneck", "bottleneck", [row.bottleneck for row in rows]
    if any(row.shares for row in rows):
        yield (
            "shares",
            "shares",
            [bottleneck_shares(row.verdict, row.shares) for row in rows],
        )


def _best_cells(rows: Sequence[Row]) -> dict[str, str]:
    """Return the cells of the arms that others are compared with."""
    return {
        row.name: units.UNKNOWN if row.alone else "1" for row in rows if row.fastest
    }


def _ratio_columns(group: Group) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the ratios to the best arm with equal load, and to the baseline, marked if
    their loads differ.
    """
    column = group.ranks_by.column
    what = "x fastest" if column is None else f"x least {column.heading}"
    heading = f"{what} of c (95 %)" if group.mixed else f"{what} (95 %)"
    yield "ratio", heading, [row.ratio_text for row in group.rows]
    for base in (row for row in group.rows if row.name == group.baseline):
        marks = [
            "" if row.load == base.load else f" at {group.place_of(row)}"
            for row in group.rows
        ]
        cells = [
            f"{units.ratio_of(row.to_baseline)}{mark}"
            for row, mark in zip(group.rows, marks, strict=True)
        ]
        cells[group.rows.index(base)] = "1"
        yield "baseline", f"x {group.name_of(base)}", cells
