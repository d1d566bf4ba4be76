"""The histories of the stored runs as metrics: the typical level between two changes, and the changes themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily

from clientlab.judging.history import LineHistory, Step, Track, history_of
from clientlab.judging.history_lines import PastRun, figures_with, lines_of
from clientlab.results.document import Run
from clientlab.results.figures import EXPORTED
from clientlab.results.labels import ARM, of_arm

MOST_ARMS = 40
"""Experiments with more arms have no history here: it would take seconds in a scrape. The command shows it."""

_FIGURES = frozenset(figure.key for figure, _ in EXPORTED)

_LEVEL = "Typical level of a figure between two changes of its history, in the figure's unit. A change is a step."
_CHANGE = (
    "A change of a figure's level that began with this run: the new level over the old one, of a share the difference. "
    "Of 100 histories without a change, 95 have none."
)


def families() -> dict[str, GaugeMetricFamily]:
    """The metrics of histories, still empty."""
    return {
        "typical_level": GaugeMetricFamily("clientlab_run_typical_level", _LEVEL, labels=(*ARM, "figure")),
        "change": GaugeMetricFamily("clientlab_run_change", _CHANGE, labels=(*ARM, "figure", "verdict")),
    }


def fill(into: dict[str, GaugeMetricFamily], runs: Iterable[Run]) -> None:
    """Add the histories of all experiments among the runs."""
    by_experiment: dict[str, list[PastRun]] = {}
    figures = [figure for figure in figures_with(()) if figure.key in _FIGURES]
    for run in runs:
        if len(run.experiment.arms) <= MOST_ARMS:
            by_experiment.setdefault(run.experiment.name, []).append(PastRun.of(run, figures))
    for past in by_experiment.values():
        for line in lines_of(past):
            found = history_of(line, figures)
            for name, labels, value in _rows(found):
                into[name].add_metric(labels, value)


def _rows(found: LineHistory) -> Iterator[tuple[str, list[str], float]]:
    """Name of the metric, values of its labels, and its own value."""
    for track in found.tracks:
        steps = {step.at: step for step in track.steps}
        for part in track.segments:
            level = track.level_of(part)
            for at in part:
                labels = _labels(found, track, at)
                if labels is None or level is None or track.levels[at] is None:
                    continue
                yield "typical_level", [*labels, track.figure.key], level
                if at in steps:
                    yield "change", [*labels, track.figure.key, _verdict(track, steps[at])], _size(steps[at])


def _labels(found: LineHistory, track: Track, at: int) -> list[str] | None:
    """None for what all arms have in common, and for an arm that the run does not have."""
    run = found.line.runs[at].run
    arm = next((one for one in run.experiment.arms if one.name == track.arm), None)
    return None if arm is None else of_arm(run.run, run.experiment.name, arm.name, arm)


def _verdict(track: Track, step: Step) -> str:
    return track.figure.direction.worse if step.worse else track.figure.direction.better


def _size(step: Step) -> float:
    if step.ratio is not None:
        return step.ratio.value
    return step.after - step.before
