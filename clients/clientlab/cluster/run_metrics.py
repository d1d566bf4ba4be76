"""A run as metrics, from the list of figures: medians over rounds. An unknown figure has no sample."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily

from clientlab.analysis.ratios import FEWEST_ROUNDS, typical_estimate
from clientlab.judging.cautions import commonest_verdict
from clientlab.judging.changes import simultaneous
from clientlab.judging.ranking import group_of, ranked
from clientlab.reports.claims_section import doubts, sentence
from clientlab.reports.rows import speed_of
from clientlab.results.document import Run
from clientlab.results.figure_definition import Metric
from clientlab.results.figures import EXPORTED
from clientlab.results.labels import ARM, of_arm
from clientlab.results.plan import Arm
from clientlab.results.trial import Trial

_CLAIM = ("run", "experiment", "claim")
_NOT_HASHED = {"load_average", "host", "lab_commit", "environments"}
_COMPARED = [figure for figure, _ in EXPORTED if figure.compared]

_MARGIN = (
    "Half the width of the interval of a figure's median over rounds, of its logarithm. Two runs differ if their "
    "logarithms are further apart than the root of the margins' squares."
)

Families = dict[str, GaugeMetricFamily]
_Row = tuple[str, list[str], float]
"""Name of the metric, values of its labels, and its own value."""


def families(stem: str = "run") -> Families:
    """Return every metric of a run, still empty. `stem`: ``run`` for finished runs, ``present`` for one in progress."""
    rows: dict[str, tuple[str, tuple[str, ...]]] = {
        "info": ("A run.", ("run", "experiment", "machine", "python", "surroundings")),
        "created_timestamp_seconds": ("When the run began.", ("run",)),
        "requests_per_second_low": ("Lower end of the 95 % interval of the requests per second.", ARM),
        "requests_per_second_high": ("Upper end of it.", ARM),
        "rank": ("An arm's place in its workload, upstream, route and link, by its time; 1 is the best.", ARM),
        "rounds": ("Finished trials of an arm: its rounds so far.", ARM),
        "concurrency": ("Requests of an arm in flight at once.", ARM),
        "margin": (_MARGIN, (*ARM, "figure")),
        "errors": ("Failed requests, all rounds.", ARM),
        "verdict": ("1 for what held most of its trials back.", (*ARM, "verdict")),
        "claim": ("b's figure over a's of a claim; NaN without one.", (*_CLAIM, "verdict")),
        "claim_info": ("1 for each claim; its sentence is a label.", (*_CLAIM, "sentence")),
    }
    for figure, metric in EXPORTED:
        labels = (*ARM, "quantile") if metric.quantile else ARM
        text = "Exact quantiles of all requests." if metric.quantile else figure.description
        rows.setdefault(metric.name, (f"{text[0].upper()}{text[1:]}", labels))
        if figure.bounded is not None:
            text = "Lower bounds of quantiles that fall on failed requests."
            rows.setdefault(_name_at_least(metric), (text, labels))
    return {
        name: GaugeMetricFamily(f"clientlab_{stem}_{name}", text, labels=labels)
        for name, (text, labels) in rows.items()
    }


def schedule() -> GaugeMetricFamily:
    """Return the metric of a schedule's progress, still empty. `state` is done, failed or left."""
    text = "Trials of the run in progress."
    return GaugeMetricFamily("clientlab_schedule_trials", text, labels=("run", "experiment", "state"))


def fill(into: Families, run: Run) -> None:
    """Add the metrics of a run."""
    for name, labels, value in _rows(run):
        into[name].add_metric(labels, value)


def _rows(run: Run) -> Iterator[_Row]:
    machine, about = run.surroundings, [run.run, run.experiment.name]
    where = f"{machine.cpu_model}, {machine.cpu_usable:g} cores"
    yield "info", [*about, where, machine.python, _hash_surroundings(run)], 1
    yield "created_timestamp_seconds", [run.run], datetime.fromisoformat(run.created).timestamp()
    for claim in run.claims:
        ratio = math.nan if claim.ratio is None else claim.ratio
        yield "claim", [*about, claim.name, claim.verdict], ratio
        yield "claim_info", [*about, claim.name, sentence(claim) + doubts(claim)], 1
    places = {
        (group, standing.name): place
        for group, standings in ranked(run).items()
        for place, standing in enumerate(standings, start=1)
        if not standing.fell_short
    }
    for arm in run.experiment.arms:
        labels = of_arm(run.run, run.experiment.name, arm.name, arm)
        if place := places.get((group_of(arm), arm.label or arm.strategy)):
            yield "rank", labels, place
        for name, more, value in _arm_rows(run, arm):
            yield name, labels + more, value


def _arm_rows(run: Run, arm: Arm) -> Iterator[_Row]:
    """Yield the metrics of an arm, each with the labels that it has beside those of the arm."""
    trials = [trial for trial in run.trials_of(arm.name) if trial.status == "done"]
    if not trials:
        return
    for figure, metric in EXPORTED:
        if (value := figure.over_rounds(trials)) is not None:
            name = _name_at_least(metric) if figure.is_bound(trials) else metric.name
            yield name, [metric.quantile] if metric.quantile else [], value
    speed = speed_of(trials)
    if speed is not None and speed.low is not None and speed.high is not None:
        yield "requests_per_second_low", [], speed.low
        yield "requests_per_second_high", [], speed.high
    for key, margin in _margins(trials, len(run.experiment.arms)):
        yield "margin", [key], margin
    yield "rounds", [], len(trials)
    yield "concurrency", [], trials[0].concurrency
    yield "errors", [], sum(sum(trial.errors.values()) for trial in trials)
    if verdict := commonest_verdict(trials):
        yield "verdict", [verdict], 1


def _margins(trials: list[Trial], arms: int) -> Iterator[tuple[str, float]]:
    """Yield key and margin of each figure. `arms`: of the run, for intervals that hold together in 95 of 100 runs."""
    level = simultaneous(arms * len(_COMPARED))
    for figure in _COMPARED:
        values = figure.values(trials)
        if len(values) >= FEWEST_ROUNDS and min(values) > 0 and not figure.has_bounds(trials):
            found = typical_estimate(values, level)
            if found.low and found.high is not None:
                yield figure.key, (math.log(found.high) - math.log(found.low)) / 2 + figure.resolution


def _name_at_least(metric: Metric) -> str:
    """Return a name such as ``latency_at_least_seconds``: a lower bound must not look like a value."""
    stem, _, unit = metric.name.rpartition("_")
    return f"{stem}_at_least_{unit}"


def _hash_surroundings(run: Run) -> str:
    """Return a hash that is equal for runs whose figures may be compared: machine, limits, versions, servers.

    Unknown fields do not count, so that a new field does not make older runs incomparable. The load average, the
    host's name, which is new for each container, and the lab's commit do not count either.
    """
    machine = run.surroundings.model_dump(exclude=_NOT_HASHED, exclude_none=True)
    if environments := run.surroundings.environments:
        machine["environments"] = {name: one.model_dump(exclude={"folder"}) for name, one in environments.items()}
    return hashlib.sha256(json.dumps(machine, sort_keys=True).encode()).hexdigest()[:8]
