"""Loaded by each Dask worker (`dask worker --preload clientlab.cluster.preload`).

It adds the metrics of the worker's trial to Dask's `/metrics`, and ends the trial when the worker ends.
"""

from __future__ import annotations

from typing import Any

from prometheus_client import REGISTRY

from clientlab.cluster import trials
from clientlab.cluster.live_metrics import LIVE


def dask_setup(_worker: Any) -> None:
    """Add the live metrics to the registry that Dask serves."""
    REGISTRY.register(LIVE)


def dask_teardown(_worker: Any) -> None:
    """End the trial that is being measured, with its processes."""
    trials.stop()
