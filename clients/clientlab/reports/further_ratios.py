"""Ratios of further figures to the fastest arm: p99 and CPU time, which do not decide who is the fastest."""

from __future__ import annotations

from collections.abc import Mapping

from clientlab.analysis.ratios import Ratio
from clientlab.analysis.standings import Comparisons, Standing
from clientlab.judging.ranking import ArmKey, compared_by
from clientlab.results.document import Run
from clientlab.results.figure_definition import Figure
from clientlab.results.figures import BY_KEY, ranked_by

_FURTHER = (BY_KEY["p99"], BY_KEY["cpu"])

Further = Mapping[str, Mapping[ArmKey, Comparisons]]
"""Key of a figure → the comparisons of each arm by it."""


def further_figures(*, open_load: bool) -> list[Figure]:
    """Return the figures that have ratios beside the one by which arms are ranked."""
    return [figure for figure in _FURTHER if figure is not ranked_by(open_load=open_load)]


def further_comparisons(run: Run) -> Further:
    """Compare all arms of a run by the further figures."""
    return {figure.key: compared_by(run, figure) for figure in _FURTHER}


def ratios_to_fastest(standing: Standing, key: ArmKey, found: Further, *, open_load: bool) -> dict[str, Ratio]:
    """Return figure → how many times as much the arm has as the fastest arm of its load, where that is known."""
    ratios: dict[str, Ratio] = {}
    for figure in further_figures(open_load=open_load):
        of_arm = found[figure.key].get(key)
        ratio = None if of_arm is None else of_arm.ratio(standing.name, standing.reference)
        if ratio is not None:
            ratios[figure.key] = ratio
    return ratios
