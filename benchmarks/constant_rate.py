"""Latencies of a constant arrival rate, computed without the lab's code, by wrk2's arithmetic."""

from __future__ import annotations

import numpy as np

from clientlab.measuring.outcome import Measurement

PERCENTS = {"p50": 50, "p95": 95, "p99": 99}


def of_wrk2(measured: Measurement, rate: float) -> dict[str, float]:
    """Seconds by quantile. A latency is the end of request k less its intended start, k over the rate after the first.

    Gil Tene, wrk2: "latency from the time the transmission should have occurred", and not from the actual one.
    """
    records, numbers = measured.samples.records, measured.samples.numbers
    intended = measured.outcome.began + numbers / rate
    latencies = np.sort(records["start"] + records["seconds"] - intended)
    return {name: float(np.percentile(latencies, percent)) for name, percent in PERCENTS.items()}
