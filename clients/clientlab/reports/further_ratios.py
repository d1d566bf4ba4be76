"""Ratios of further figures to the fastest arm, as p99 and CPU time, which do not decide who is the fastest."""

from __future__ import annotations

from clientlab.analysis.ratios import CONFIDENCE, Ratio
from clientlab.analysis.simultaneous import paired_ratios
from clientlab.reports.rows import Group, Row
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import BY_KEY, ranked_by

Series = dict[int, float]


def further_figures(group: Group) -> list[Figure]:
    """Those that have ratios beside the one by which the arms are ranked."""
    ranking = ranked_by(group.ranking)
    keys = _OF_STREAMS if group.ranking in ("cpu", "lag") else _OF_REQUESTS
    return [BY_KEY[key] for key in keys if key != ranking.key]


_OF_REQUESTS = ("p99", "cpu")
_OF_STREAMS = ("cpu_per_event", "lag_p50", "lag_p99")


def ratios_to_fastest(group: Group, figure: Figure) -> dict[str, Ratio]:
    """Arm → how many times as much it has as the fastest arm of its load, of arms where that is known.

    The ratio is that of the two medians which tables show. The intervals, of ratios paired by round, are widened to
    hold it, and hold together for all arms of the group.
    """
    pairs = [
        (row, best)
        for rows in group.by_load
        for best in rows
        if best.fastest
        for row in rows
        if row is not best and not figure.has_bounds([*row.trials, *best.trials])
    ]
    found = paired_ratios([(_by_round(row, figure), _by_round(best, figure)) for row, best in pairs], CONFIDENCE)
    return {
        row.name: ratio.with_value(of / to)
        for (row, best), ratio in zip(pairs, found, strict=True)
        if ratio is not None and (of := row.figures[figure.key]) and (to := best.figures[figure.key])
    }


def _by_round(row: Row, figure: Figure) -> Series:
    return {trial.round: value for trial in row.trials for value in figure.values([trial]) if value > 0}
