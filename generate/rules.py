"""The recording rules of dashboards/prometheus/rules.yml, from the list of figures."""

from __future__ import annotations

from clientlab.results.figures import EXPORTED
from clientlab.results.labels import ARM
from clientlab.worker.exporter import BUCKETS


def quantile_rules() -> str:
    """A rule for each quantile that is exported: the quantile of the live trials, computed from their histograms.

    Failed requests are in the bucket +Inf. For a quantile in that bucket, histogram_quantile returns the end of the
    last other bucket, which nobody measured: the rule leaves it out.
    """
    return "".join(
        _rule(figure.key, metric.quantile)
        for figure, metric in EXPORTED
        if metric.quantile and metric.name == "latency_seconds"  # the one histogram that workers export
    )


def _rule(key: str, quantile: str) -> str:
    return f"""\
      - record: clientlab:request_seconds:{key}
        expr: >-
          histogram_quantile({quantile}, sum by ({", ".join(ARM)}, le)
          (rate(clientlab_request_seconds_bucket[10s]))) < {BUCKETS[-1]:g}
"""
