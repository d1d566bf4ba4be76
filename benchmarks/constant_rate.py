"""Latencies of a constant arrival rate, found without the lab's code: by wrk2's arithmetic, and by k6."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from shutil import which

import numpy as np

from clientlab import child_processes
from clientlab.generators.commands import K6
from clientlab.measuring.outcome import Measurement

PERCENTS = {"p50": 50, "p95": 95, "p99": 99}
_PATIENCE = 30.0
"""Seconds that k6 may take beyond its load."""
_SCRIPT = """\
import http from 'k6/http';
export const options = {{
  discardResponseBodies: true,
  summaryTrendStats: ['p(50)', 'p(95)', 'p(99)'],
  scenarios: {{ arrivals: {{
    executor: 'constant-arrival-rate', rate: {rate}, timeUnit: '1s', duration: '{seconds}s',
    preAllocatedVUs: {places}, maxVUs: {places},
  }} }},
}};
export default function () {{ http.get({url}); }}
export function handleSummary(data) {{ return {{ {report}: JSON.stringify(data) }}; }}
"""


def of_wrk2(measured: Measurement, rate: float) -> dict[str, float]:
    """Seconds by quantile. A latency is the end of request k less its intended start, k over the rate after the first.

    Gil Tene, wrk2: "latency from the time the transmission should have occurred", and not from the actual one.
    """
    records, numbers = measured.samples.records, measured.samples.numbers
    intended = measured.outcome.began + numbers / rate
    latencies = np.sort(records["start"] + records["seconds"] - intended)
    return {name: float(np.percentile(latencies, percent)) for name, percent in PERCENTS.items()}


def of_k6(url: str, rate: int, seconds: int, places: int, on_start: Callable[[], None]) -> dict[str, float] | None:
    """Seconds by quantile, of k6's executor `constant-arrival-rate`; None if k6 is not installed.

    `places`: virtual users. k6 drops an iteration without a free one, and raises SystemExit here. `on_start` is called
    once k6 was started.
    """
    if which("k6") is None:
        print(f"open-load: k6 is left out: it is not installed; {K6.install}", file=sys.stderr)
        return None
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        script, report, log = folder / "k6.js", folder / "k6.json", folder / "k6.log"
        words = {"url": json.dumps(url), "report": json.dumps(str(report))}
        script.write_text(_SCRIPT.format(rate=rate, seconds=seconds, places=places, **words), encoding="utf-8")
        command = ["k6", "run", "--quiet", "--no-usage-report", "--address", "", "--no-color", str(script)]
        process = child_processes.start(command, log, os.environ)
        try:
            on_start()
            process.wait(seconds + _PATIENCE)
        except subprocess.TimeoutExpired:
            raise SystemExit(f"k6 did not end within {seconds + _PATIENCE:g} s") from None
        finally:
            child_processes.stop(process, patience=0)
        if process.returncode:
            raise SystemExit(f"k6 {child_processes.how_it_ended(process, log)}")
        metrics = json.loads(report.read_text(encoding="utf-8"))["metrics"]
    dropped = metrics.get("dropped_iterations", {}).get("values", {}).get("count", 0)
    if dropped or metrics["http_req_failed"]["values"]["passes"]:
        raise SystemExit(f"k6 dropped {dropped} requests, or some failed: that is another load")
    found = metrics["http_req_duration"]["values"]
    return {name: found[f"p({percent})"] / 1000 for name, percent in PERCENTS.items()}
