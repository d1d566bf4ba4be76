"""Thresholds as lines of text, for the terminal, Markdown and JUnit."""

from __future__ import annotations

from collections.abc import Sequence

from clientlab import units
from clientlab.judging.thresholds import ThresholdResult

_BOUND = ", a lower bound: it falls on failed requests"


def lines(results: Sequence[ThresholdResult]) -> list[str]:
    """A line for each threshold that failed or is not sure. If all held, one line for all; none without thresholds."""
    if not results:
        return []
    found = [f"{one.outcome.upper()}: {sentence(one)}" for one in results if one.outcome != "held"]
    return found or [f"all thresholds held ({len(results)} checked)"]


def sentence(result: ThresholdResult) -> str:
    """The threshold, the arm, the run and the figure."""
    parts = [] if result.found is None and result.lost else [_figure(result)]
    if result.lost:
        parts.append(f"{result.lost} {'trial' if result.lost == 1 else 'trials'} failed")
    return f"{result.threshold.text} · {result.arm} · {result.run}: {', and '.join(parts)}"


def _figure(result: ThresholdResult) -> str:
    figure = result.threshold.figure
    if result.threshold.change and result.at_least:
        return f"no change of {figure.label} is known{_BOUND}"
    if result.found is None:
        return "no finished trial has this figure"
    unsure = "; its interval reaches back within the threshold: measure more rounds"
    if not result.threshold.change:
        value = figure.text(result.found, at_least=result.at_least)
        return f"{figure.label} {value}{_BOUND if result.at_least else unsure if result.outcome == 'not sure' else ''}"
    change = (
        f"{units.signed(100 * result.found)} points"
        if figure.unit == "share"
        else f"{units.signed(100 * (result.found - 1))} %"
    )
    return f"{figure.label} {change}{unsure if result.outcome == 'not sure' else ''}"
