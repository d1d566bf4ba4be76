"""The tables of docs/metrics.md, from the metric families that worker, lab and upstream export."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from clientlab.cli.listing import markdown
from clientlab.results.labels import ARM
from clientlab.results.machine import machine_id
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.service import history_metrics, run_metrics
from clientlab.worker.exporter import Exporter
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload
from findings.page import runs
from mockupstream.ledger import Book
from mockupstream.metrics import UpstreamCollector


def worker_table() -> str:
    """Metrics of an open load's streams on one machine that have ended, with a delay: then a worker exports all."""
    trial = next(iter(runs().values())).trials[0]
    with tempfile.TemporaryDirectory() as folder:
        workload = Workload(stream="sse", delay=Delay.parse("1ms"), rate=1)
        exporter = Exporter("run", "experiment", trial, workload, Path(folder))
        exporter.served(ServerCounters(upstream=ServerUse(cpu_seconds=0.0, machine=machine_id())))
        exporter.started()
        exporter.ended()
        return _table(exporter.collect(), common=ARM)


def lab_table() -> str:
    """Metrics of the schedule and of a run."""
    families = run_metrics.families() | history_metrics.families()
    return _table([run_metrics.schedule(), *families.values()], common=ARM)


def upstream_table() -> str:
    """Metrics of an upstream."""
    return _table(UpstreamCollector(Book(), "framework", "server").collect(), common=())


def _table(families: Iterable[Metric], common: tuple[str, ...]) -> str:
    return markdown(
        [
            {
                "metric": f"`{family.name}{'_total' if family.type == 'counter' else ''}`",
                "type": family.type,
                "labels": _labels(family, common),
                "meaning": family.documentation,
            }
            for family in families
        ]
    )


def _labels(family: Metric, common: tuple[str, ...]) -> str:
    """Labels beside the common ones; all of them, if the metric has not all the common ones."""
    if not isinstance(family, CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily):
        raise TypeError(f"{family.name} is a {family.type}")
    own = family._labelnames  # noqa: SLF001 - a family without samples shows them nowhere else
    names = (*own, *(("le",) if family.type == "histogram" else ()))
    if set(common) <= set(names):
        return ", ".join(name for name in names if name not in common)
    return f"only {', '.join(names)}" if names and common else ", ".join(names) or "none"
