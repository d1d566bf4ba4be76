"""Metric families with the labels of one arm: gauges, counters that never fall, and histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from clientlab.analysis.histogram import Floats
from clientlab.results import labels
from clientlab.samples.log_reader import Flags


@dataclass
class LiveHistogram:
    """Seconds in buckets. `bounds`: upper ends of the buckets; behind them is one without an end, +Inf."""

    bounds: Sequence[float]
    counts: npt.NDArray[np.int64] = field(init=False)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.counts = np.zeros(len(self.bounds) + 1, np.int64)

    def add(self, seconds: Floats, inside: Flags | None = None) -> None:
        """Count these seconds. `inside`: those that are not count in the bucket +Inf alone; None: all are."""
        places = np.searchsorted(self.bounds, seconds)
        if inside is not None:
            places = np.where(inside, places, len(self.bounds))
        self.counts += np.bincount(places, minlength=len(self.counts))
        self.seconds += float(seconds.sum())


class ArmFamilies:
    """Makes the families of one trial. `values`: of the labels of its arm."""

    def __init__(self, values: list[str]) -> None:
        self.values = values
        self._shown: dict[str, float] = {}  # counters as they were scraped last

    def histogram(self, name: str, text: str, counted: LiveHistogram) -> Metric:
        """A histogram as it is now."""
        family = HistogramMetricFamily(name, text, labels=labels.ARM)
        below = np.cumsum(counted.counts).tolist()
        ends = [*map(str, counted.bounds), "+Inf"]
        family.add_metric(self.values, list(zip(ends, below, strict=True)), counted.seconds)
        return family

    def counter(self, name: str, text: str, value: float) -> Metric:
        """A counter, which shows no less than before."""
        # What is seen from outside may be more than the trial's own figure: rate() takes a fall for a new process.
        self._shown[name] = max(self._shown.get(name, value), value)
        family = CounterMetricFamily(name, text, labels=labels.ARM)
        family.add_metric(self.values, self._shown[name])
        return family

    def gauge(self, name: str, text: str, value: float | None) -> Metric:
        """A gauge without a sample where the value is unknown."""
        family = GaugeMetricFamily(name, text, labels=labels.ARM)
        if value is not None:
            family.add_metric(self.values, value)
        return family
