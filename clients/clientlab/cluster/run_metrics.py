"""A run as metrics, from the list of figures: medians over rounds. An unknown figure has no sample."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily

from clientlab.analysis.ratios import FEWEST_ROUNDS, typical_estimate
from clientlab.judging.cautions.trials import commonest_verdict
from clientlab.judging.changes import simultaneous
from clientlab.judging.ranking import group_of, ranked
from clientlab.reports.claims_section import doubts, sentence
from clientlab.reports.rows import speed_of
from clientlab.results.document import ClaimResult, Run
from clientlab.results.figure_definition import Metric
from clientlab.results.figures import EXPORTED
from clientlab.results.labels import ARM, of_arm
from clientlab.results.plan import Arm
from clientlab.results.trial import Trial

_CLAIM = ("run", "experiment", "claim")
_NOT_HASHED = frozenset({"load_average", "host", "lab_commit"})

_MARGIN = (
    "Half the width of the interval of a figure's median over rounds, of its logarithm. All figures and arms of a run "
    "together hold the truth in 95 of 100 runs. Two runs differ where their logarithms are further apart than the root "
    "of the margins' squares."
)

_RANK = (
    "An arm's place in its workload, upstream, route and link, by what reports rank it by: its time, or in an open "
    "load p99 from the planned start. 1 is the best. Arms of unlike load follow each other."
)

_MARGINS = tuple(figure for figure, _ in EXPORTED if figure.compared)

Families = dict[str, GaugeMetricFamily]
_Row = tuple[str, list[str], float]
"""Name of the metric, values of its labels, and its own value."""


def families(stem: str = "run") -> Families:
    """Every metric of a run, still empty; `stem`: ``run`` for those that have ended, ``present`` for the last begun."""
    rows: Iterable[tuple[str, str, tuple[str, ...]]] = (
        ("info", "A run.", ("run", "experiment", "machine", "python", "surroundings")),
        ("created_timestamp_seconds", "When the run began.", ("run",)),
        *_of_figures(),
        ("requests_per_second_low", "Lower end of the 95 % interval of the requests per second.", ARM),
        ("requests_per_second_high", "Upper end of it.", ARM),
        ("rank", _RANK, ARM),
        ("rounds", "Finished trials of an arm: its rounds so far.", ARM),
        ("concurrency", "Requests of an arm in flight at once.", ARM),
        ("margin", _MARGIN, (*ARM, "figure")),
        ("errors", "Failed requests, all rounds.", ARM),
        ("verdict", "1 for what held most of its trials back.", (*ARM, "verdict")),
        ("claim", "b's figure over a's of a claim; NaN where it has none.", (*_CLAIM, "verdict")),
        ("claim_info", "1 for each claim; its sentence is a label.", (*_CLAIM, "sentence")),
    )
    return {name: GaugeMetricFamily(f"clientlab_{stem}_{name}", text, labels=labels) for name, text, labels in rows}


def _of_figures() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Name, text and labels of the metrics in the list of figures; several quantiles share a metric."""
    seen = set()
    for figure, metric in EXPORTED:
        if metric.name not in seen:
            what = metric.name.removesuffix("_seconds")
            text = f"exact quantiles of the {what} of all requests" if metric.quantile else figure.description
            yield metric.name, f"{text[0].upper()}{text[1:]}.", ((*ARM, "quantile") if metric.quantile else ARM)
        seen.add(metric.name)
    for figure, metric in EXPORTED:
        name = _at_least(metric)
        if figure.bounded is not None and name not in seen:
            text = "Lower bounds of what has no sample in the metric without at_least: it falls on failed requests."
            yield name, text, ((*ARM, "quantile") if metric.quantile else ARM)
            seen.add(name)


def _at_least(metric: Metric) -> str:
    """``latency_at_least_seconds``: a lower bound must not look like a value."""
    stem, _, unit = metric.name.rpartition("_")
    return f"{stem}_at_least_{unit}"


def schedule() -> GaugeMetricFamily:
    """The metric of a schedule's progress, still empty. `state` is done, failed or left."""
    text = "Trials of the run in progress, or of the last one."
    return GaugeMetricFamily("clientlab_schedule_trials", text, labels=("run", "experiment", "state"))


def fill(into: Families, run: Run) -> None:
    """Add the metrics of a run."""
    machine = run.surroundings
    where = f"{machine.cpu_model}, {machine.cpu_usable:g} cores"
    into["info"].add_metric([run.run, run.experiment.name, where, machine.python, surroundings_hash(run)], 1)
    into["created_timestamp_seconds"].add_metric([run.run], datetime.fromisoformat(run.created).timestamp())
    rows = [row for claim in run.claims for row in _of_claim(run, claim)]
    rows += [row for arm in run.experiment.arms for row in _of_arm(run, arm)]
    for name, labels, value in (*rows, *_ranks(run)):
        into[name].add_metric(labels, value)


def surroundings_hash(run: Run) -> str:
    """Equal for runs whose figures may be compared: machine, limits, versions, servers.

    Unknown fields do not count, so that a new field does not make older runs incomparable. The hash leaves out the
    load average, the host's name, which is new for each container, and the lab's commit, which often changes no
    figure.
    """
    machine = run.surroundings.model_dump(exclude={*_NOT_HASHED, "environments"}, exclude_none=True)
    if environments := run.surroundings.environments:
        machine["environments"] = {name: one.model_dump(exclude={"folder"}) for name, one in environments.items()}
    return hashlib.sha256(json.dumps(machine, sort_keys=True).encode()).hexdigest()[:8]


def _margins(trials: list[Trial], arms: int) -> Iterator[tuple[str, float]]:
    """Key of a figure, and half the width of the interval of its median's logarithm. `arms`: of the run."""
    level = simultaneous(arms * len(_MARGINS))
    for figure in _MARGINS:
        values = figure.values(trials)
        if len(values) < FEWEST_ROUNDS or min(values) <= 0 or figure.has_bounds(trials):
            continue
        found = typical_estimate(values, level)
        if found.low and found.high is not None:
            yield figure.key, (math.log(found.high) - math.log(found.low)) / 2 + figure.resolution


def _ranks(run: Run) -> Iterator[_Row]:
    places = {
        (group, standing.name): place
        for group, standings in ranked(run).items()
        for place, standing in enumerate(standings, start=1)
        if not standing.fell_short
    }
    for arm in run.experiment.arms:
        if place := places.get((group_of(arm), arm.label or arm.strategy)):
            yield "rank", of_arm(run.run, run.experiment.name, arm.name, arm), place


def _of_claim(run: Run, claim: ClaimResult) -> Iterator[_Row]:
    labels = [run.run, run.experiment.name, claim.name]
    yield "claim", [*labels, claim.verdict], math.nan if claim.ratio is None else claim.ratio
    yield "claim_info", [*labels, sentence(claim) + doubts(claim)], 1


def _of_arm(run: Run, arm: Arm) -> Iterator[_Row]:
    trials = [trial for trial in run.trials_of(arm.name) if trial.status == "done"]
    if not trials:
        return
    labels = of_arm(run.run, run.experiment.name, arm.name, arm)

    def row(name: str, value: float, *more: str) -> _Row:
        return name, [*labels, *more], value

    for figure, metric in EXPORTED:
        if (value := figure.over_rounds(trials)) is not None:
            name = _at_least(metric) if figure.is_bound(trials) else metric.name
            yield row(name, value, *((metric.quantile,) if metric.quantile else ()))
    speed = speed_of(trials)
    if speed is not None and speed.low is not None and speed.high is not None:
        yield row("requests_per_second_low", speed.low)
        yield row("requests_per_second_high", speed.high)
    yield from (row("margin", margin, key) for key, margin in _margins(trials, len(run.experiment.arms)))
    yield row("rounds", len(trials))
    yield row("concurrency", trials[0].concurrency)
    yield row("errors", sum(sum(trial.errors.values()) for trial in trials))
    if verdict := commonest_verdict(trials):
        yield row("verdict", 1, verdict)
