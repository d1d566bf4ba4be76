"""A run as tables: groups of compared arms, a row per arm, and a column per figure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from statistics import median

import numpy as np

from clientlab import units
from clientlab.analysis.bottleneck import FULL
from clientlab.judging import ranking
from clientlab.judging.cautions import REORDERING, commonest_verdict
from clientlab.judging.find_max import typical_rate
from clientlab.judging.thresholds import ThresholdResult
from clientlab.reports.sections import DataTable
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY, FIGURES, HIGHEST_RATE, Figure, ranked_by
from clientlab.results.trial import PlannedTrial, Trial
from clientlab.running.schedule import find_first_look
from clientlab.statistics.histogram import (
    Distribution,
    decode_histogram,
    merge_distributions,
)
from clientlab.statistics.ratios import Ratio
from clientlab.statistics.simultaneous import Comparisons

# Marks latencies that include the wait for a free connection; a caution explains it.
WAITS = "*"
_LARGE_BODY = 1 << 20
_MOST_COLUMNS = 10  # the most columns of a table's short form
_THROUGHPUT = BY_KEY["throughput"]
_TIME = BY_KEY["time_per_request"]
_P99 = BY_KEY["p99"]
_FURTHER = (BY_KEY["cpu"], BY_KEY["p50"], _P99, BY_KEY["first_event_p50"])
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
    "start-up": "startup",
}
"""Verdict → the share that led to it, if they have different names."""


@dataclass(frozen=True)
class Order:
    """What decides the order of the arms of a group, and how reports put it."""

    leading: Figure
    """The figure that answers name, and tables show beside the ratios."""

    lead: str
    """What the fastest arm did."""

    separator: str = ", "
    compared: str = "{} times as fast as {}"
    """How it compares with a slower arm: their ratio, and its name."""

    undecided: str = "{} times as long, slower"
    """What a ratio shows that does not decide; in which rounds follows."""

    brief: Sequence[str] = ()
    """Further columns of the short form that are important in this order."""

    others: Sequence[str] = ("p99", "cpu", "p50", "answered", "baseline", "received")
    """The other columns of the short form."""


_BY_HIGHEST_RATE = Order(
    HIGHEST_RATE,
    "held {} requests/s",
    compared="{} times the rate of {}",
    undecided="{best} held {} times its rate, more",
)
_BY_FIRST_RESPONSE = Order(
    BY_KEY["first_response"],
    "had its first response {} after the start of the interpreter",
    brief=["import", "first_event_p50"],
    others=["baseline", "cpu"],
)
_BY_FIGURE = {
    "time_per_request": Order(_THROUGHPUT, "made {} requests/s"),
    "p99": Order(
        _P99,
        "had a p99 of {} from the planned start",
        separator="; ",
        compared="that of {1} is {0} times as long",
        brief=["achieved_rate", "dropped"],
    ),
    "cpu_per_event": Order(
        BY_KEY["cpu_per_event"],
        "took {} of CPU time per event",
        separator="; ",
        compared="{1} takes {0} times as much",
        undecided="{} times as much, more",
        brief=["first_event_p50", "gap_p99", "lag_p50", "lag_p99", "together"],
    ),
}
"""The order of other arms, by the key of the figure that ranks them."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """An arm with its figures over the rounds."""

    standing: ranking.Standing
    """Its place in its group."""

    trials: Sequence[Trial]
    """By round."""

    load: ranking.OfferedLoad

    figures: dict[str, float | None]
    """By key. Those with a ratio agree with it, except for quantiles."""

    compared_by: Mapping[str, Comparisons]
    """Comparisons of all arms with the same load, by the keys of further figures."""

    alone: bool
    """No other arm of the group has its load, but some have other loads."""

    doubtful: bool
    """A caution says that its place may be wrong."""

    stopped: bool
    """Its rounds ended once their comparisons were decided, after several looks.

    So they show rather too large a difference.
    """

    @property
    def name(self) -> str:
        return self.standing.name

    @property
    def ratio(self) -> Ratio | None:
        return self.standing.ratio

    @property
    def fastest(self) -> bool:
        return self.standing.fastest

    @property
    def quoted_ratio(self) -> str:
        """The ratio with its interval, or its lower end if the rounds were stopped."""
        interval = self.ratio.interval if self.ratio else None
        if self.stopped and interval is not None and interval[0] > 1:
            return f"at least {units.lower_end(interval)}"
        return units.ratio_of(self.ratio)

    @property
    def planned(self) -> PlannedTrial:
        """The plan of the first trial, for what is the same in all of them."""
        return self.trials[0].planned

    @property
    def load_parts(self) -> list[str]:
        """Concurrency, rate and stages in words."""
        parts = [f"c={self.planned.concurrency}"]
        if self.load.rate is not None:
            parts.append(f"{units.rate(self.load.rate)}/s")
        if self.load.stages:
            parts.append(str(self.load.stages))
        return parts

    @property
    def first(self) -> bool:
        """Whether it is the fastest arm of its group or load, and no request failed."""
        is_sound = not any(trial.has_spoiling_errors for trial in self.trials)
        return self.fastest and not self.alone and is_sound

    @property
    def shortfall(self) -> str | None:
        """Why the arm is not ranked; None if it is."""
        return ranking.shortfall(self.trials) or self.standing.unlike

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
        """Latencies of the successful requests of all rounds; None without any."""
        parts = []
        for trial in self.trials:
            histogram = trial.figures.histogram
            if histogram is not None:
                part = decode_histogram(histogram.encoded, histogram.unit_seconds)
                if part.total:
                    parts.append(part)
        return merge_distributions(parts) if parts else None

    @property
    def answered_p99(self) -> float | None:
        """The p99 of the successful requests if that of all is a lower bound."""
        if self.answered is None or _P99.key not in self.bounds:
            return None
        [p99] = self.answered.quantiles(np.array([0.99]))
        return float(p99)

    @cached_property
    def waits(self) -> bool:
        return any(trial.figures.waits_for_connection for trial in self.trials)

    @cached_property
    def verdict(self) -> str | None:
        return commonest_verdict(self.trials)

    @cached_property
    def shares(self) -> dict[str, float]:
        """The median busy shares of the trials with the commonest verdict."""
        known: dict[str, list[float]] = {}
        for trial in self.trials:
            if trial.verdict is not None and trial.bound == self.verdict:
                for part, share in trial.verdict.shares.known.items():
                    known.setdefault(part, []).append(share)
        return {part: median(shares) for part, shares in known.items()}

    @cached_property
    def ratios(self) -> dict[str, Ratio | None]:
        """The ratios of further figures to the fastest arm of the load, by key."""
        reference = self.standing.reference
        return {
            key: compared.ratio(self.name, reference)
            for key, compared in self.compared_by.items()
        }

    @property
    def ratio_text(self) -> str:
        """Its ratio to the fastest arm of its load, as tables show it."""
        if self.shortfall:
            return "not ranked"
        if self.fastest:
            return units.UNKNOWN if self.alone else "1"
        return units.ratio_of(self.ratio)

    def further_ratio_text(self, figure: Figure) -> str:
        """Return the ratio of a further figure, as tables show it."""
        if self.alone:
            return units.UNKNOWN
        return "1" if self.fastest else units.ratio_of(self.ratios.get(figure.key))

    @property
    def bottleneck(self) -> str:
        if self.verdict == "client-bound" and self.shares.get("machine", 0.0) >= FULL:
            return "client, full machine"  # on a larger machine it might do more
        special = {
            "on-schedule": "none, on schedule",
            "start-up": "start of the pool",
            None: units.UNKNOWN,
        }
        words = str(self.verdict).removesuffix("-bound").replace("-", " ")
        return special.get(self.verdict, words)

    def text(self, figure: Figure) -> str:
        """Return the figure as reports show it: the highest rate with its interval."""
        value = self.figures[figure.key]
        rate = typical_rate(self.trials) if figure is HIGHEST_RATE else None
        if rate is not None and value is not None:
            return units.ratio_of(rate.with_value(value))
        text = figure.text(value, at_least=figure.key in self.bounds)
        holds_waits = figure.bounded is not None and not figure.before_send
        if self.waits and holds_waits and value is not None:
            text += WAITS
        return text


@dataclass(frozen=True)
class Group:
    """The arms with one workload, upstream, route and link, the fastest first.

    Those with equal load are together. `requests`: per trial; None if a duration ends
    it, or if arms differ. `large_bodies`: of 1 MiB or more. `baseline`: name of the row
    that others are compared with.
    """

    title: str
    rows: list[Row]
    requests: int | None
    large_bodies: bool
    baseline: str | None

    def has(self, figure: Figure) -> bool:
        """Return whether any arm has the figure."""
        return any(row.figures[figure.key] is not None for row in self.rows)

    @property
    def ranks_by(self) -> Figure:
        """The figure that ranks arms, unless the highest rate or a cold start does."""
        return ranked_by(chain.from_iterable(row.trials for row in self.rows))

    @property
    def searched(self) -> bool:
        """Whether arms are compared by the highest rate that each of them held."""
        return self.has(HIGHEST_RATE)

    @property
    def order(self) -> Order:
        """What decides the order of the arms."""
        if self.has(_BY_FIRST_RESPONSE.leading):
            return _BY_FIRST_RESPONSE
        return _BY_HIGHEST_RATE if self.searched else _BY_FIGURE[self.ranks_by.key]

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
        cases = {
            "always": True,
            "known": self.has(figure),
            "durations": self.requests is None,
            "large bodies": self.large_bodies,
        }
        return cases[figure.when]

    def place_of(self, row: Row) -> str:
        """Return what tells the arm's load from others: ``c=32``, ``200/s``, stages."""
        common = set(row.load_parts)
        for other in self.rows:
            common &= set(other.load_parts)
        return ", ".join(part for part in row.load_parts if part not in common)

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
    """Return the groups of a run, in the experiment's order.

    Arms without a finished trial are left out.
    """
    further = {figure: ranking.compare_by(run, figure) for figure in _FURTHER}
    finished = ranking.finished_by_group(run)
    groups = []
    for key, standings in ranking.rank_arms(run).items():
        trials = finished[key]
        loads = {name: ranking.load_of(run, trials[name][0]) for name in trials}
        rows = []
        for standing in standings:
            arm = key, standing.name
            ranks_by = ranked_by(trials[standing.name])
            compared_by = {
                figure.key: compared[arm]
                for figure, compared in further.items()
                if arm in compared and figure is not ranks_by
            }
            rows.append(_row(run, standing, trials, loads, compared_by))
        groups.append(_group(run, key, rows))
    return groups


def _row(
    run: Run,
    standing: ranking.Standing,
    by_arm: Mapping[str, Sequence[Trial]],
    loads: Mapping[str, ranking.OfferedLoad],
    compared_by: Mapping[str, Comparisons],
) -> Row:
    """Return the row of an arm.

    `by_arm`: the finished trials of its group. `loads`: of its arms.
    """
    trials = sorted(by_arm[standing.name], key=lambda trial: trial.planned.round)
    load = loads[standing.name]
    equal_loads = [*loads.values()].count(load)
    arm = trials[0].planned.arm
    reordering = [caution for caution in run.cautions if caution.kind in REORDERING]
    row = Row(
        standing=standing,
        trials=trials,
        load=load,
        figures=_figures_at(trials, standing.level),
        compared_by=compared_by,
        alone=equal_loads == 1 < len(loads),
        doubtful=any(arm in caution.arms for caution in reordering),
        stopped=run.decided.get(arm, 0) > find_first_look(run.experiment),
    )
    # Quantiles are medians of their rounds: otherwise, a p50 would be above the p99 now
    # and then.
    cpu = row.ratios.get("cpu")
    least_cpu = BY_KEY["cpu"].over_rounds(by_arm[standing.reference])
    if cpu and least_cpu:
        row.figures["cpu"] = least_cpu * cpu.value
    return row


def _group(run: Run, key: ranking.GroupKey, rows: list[Row]) -> Group:
    """Return the group of some rows."""
    requests = set()
    body_sizes = [0.0]
    for trial in chain.from_iterable(row.trials for row in rows):
        workload = run.experiment.workloads[trial.planned.workload]
        requests.add(workload.load.requests)
        figures = trial.figures
        body_sizes.append((figures.bytes_received or 0) / max(1, figures.requests))
        body_sizes.append(workload.request.upload_size or 0)
    within, baseline = ranking.baseline_of(run) or (None, None)
    has_large_bodies = max(body_sizes) >= _LARGE_BODY
    count = requests.pop() if len(requests) == 1 else None
    if key != within:
        baseline = None
    return Group(key.title, rows, count, has_large_bodies, baseline)


def _figures_at(trials: Sequence[Trial], level: float) -> dict[str, float | None]:
    """Return each figure's median over the rounds.

    Figures that follow from the ranking are those at `level`.
    """
    figures = {figure.key: figure.over_rounds(trials) for figure in FIGURES}
    if figures["highest_rate"] is not None:
        return figures | {"highest_rate": 1 / level}
    ranks_by = ranked_by(trials)
    typical = figures[ranks_by.key]
    is_known = math.isfinite(level) and level > 0 and not ranks_by.has_bounds(trials)
    if not typical or not is_known or ranks_by is _P99:
        return figures
    if ranks_by is not _TIME:
        return figures | {ranks_by.key: level}
    if len(_THROUGHPUT.values(trials)) == len(trials):
        figures["throughput"] = 1 / level
    if figures["received"]:
        figures["received"] *= typical / level
    for key in ("import", "first_response"):
        value = figures[key]
        if value:
            figures[key] = value * level / typical
    is_whole = not any(
        trial.figures.tail_seconds or trial.figures.errors for trial in trials
    )
    if figures["wall"] and is_whole:
        figures["wall"] *= level / typical
    return figures


def bottleneck_shares(verdict: str | None, shares: Mapping[str, float]) -> str:
    """Return the busy shares, the one that decided first.

    Example: ``client connections 99 %, delays 12 %``.
    """
    parts = [(shares[part], name) for part, name in _PARTS.items() if part in shares]
    parts.sort(reverse=True)
    words = str(verdict).removesuffix("-bound")
    deciding = _DECIDING.get(words, words.replace("-", "_"))
    if deciding in shares and deciding not in _PARTS:
        parts.insert(0, (shares[deciding], words.replace("-", " ")))
    texts = [f"{name} {100 * share:.0f} %" for share, name in parts]
    return ", ".join(texts) or units.UNKNOWN


def figure_table(group: Group) -> DataTable:
    """Return the table of a group, with a column for each figure that it has."""
    keys, headings, columns = zip(*_columns(group), strict=True)
    rows = list(zip(*columns, strict=True))
    places = {key: place for place, key in enumerate(keys)}
    texts = [places[key] for key in ("bottleneck", "shares") if key in places]
    best = [place for place, row in enumerate(group.rows) if row.first]
    brief = [places[key] for key in _brief_keys(group) if key in places]
    brief = [*brief[: _MOST_COLUMNS - 2], places["bottleneck"]]
    title = group.title
    if not group.mixed:
        title += f" · c={group.rows[0].planned.concurrency}"
    return DataTable(headings, rows, title, texts=texts, best=best, brief=brief)


def _brief_keys(group: Group) -> list[str]:
    """Return the columns of the short form, the most important first."""
    order = group.order
    keys = ["ratio", order.leading.key]
    if group.mixed:
        keys.append("c")
    if any(row.errors for row in group.rows):
        keys.append("errors")
    keys += ["attempts", "duplicates"]
    keys += [*order.brief, "first_byte_p50", "first_byte_p99", *order.others]
    for key in ("dropped", "duplicates"):
        if not any(row.figures[key] for row in group.rows):
            keys = [other for other in keys if other != key]
    return list(dict.fromkeys(keys))


def _columns(group: Group) -> Iterator[tuple[str, str, list[str]]]:
    """Yield key, heading and cells of each column."""
    rows = group.rows
    ranks_by = group.ranks_by
    are_strategies = all(row.name == row.planned.strategy for row in rows)
    names = [f"{row.name} !" if row.doubtful else row.name for row in rows]
    yield "name", "strategy" if are_strategies else "arm", names
    yield "c", "c", [str(row.planned.concurrency) for row in rows]
    for figure in FIGURES:
        if figure.heading is not None and group.shows(figure):
            yield figure.key, figure.heading, [row.text(figure) for row in rows]
            answered = [row.answered_p99 for row in rows]
            if figure is _P99 and any(answered):
                yield "answered", "p99 without errors", [*map(units.time, answered)]
            is_further = figure in _FURTHER and figure is not ranks_by
            if is_further and len(rows) > 1:
                ratios = [row.further_ratio_text(figure) for row in rows]
                yield f"x {figure.key}", f"x {figure.heading} (95 %)", ratios
        if figure is group.order.leading:
            yield from _ratio_columns(group)
    yield "bottleneck", "bottleneck", [row.bottleneck for row in rows]
    if any(row.shares for row in rows):
        shares = [bottleneck_shares(row.verdict, row.shares) for row in rows]
        yield "shares", "shares", shares


def _ratio_columns(group: Group) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the ratios to the best arm with equal load, and to the baseline.

    The latter are marked if loads differ.
    """
    heading = "x fastest"
    if group.ranks_by.heading is not None:
        heading = f"x least {group.ranks_by.heading}"
    if group.mixed:
        heading += " of c"
    yield "ratio", f"{heading} (95 %)", [row.ratio_text for row in group.rows]
    for base in group.rows:
        if base.name == group.baseline:
            cells = []
            for row in group.rows:
                text = "1" if row is base else units.ratio_of(row.standing.to_baseline)
                if row.load != base.load:
                    text += f" at {group.place_of(row)}"
                cells.append(text)
            yield "baseline", f"x {group.name_of(base)}", cells
