"""How long each dashboard's queries take together, on the Prometheus of a lab that is up (PROMETHEUS_URL)."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figures import BenchmarkRow

LIMIT = 300.0
ROUNDS = 7
_FOLDER = Path(__file__).parents[1] / "dashboards" / "grafana" / "dashboards"
_POINTS = 1000
"""That a panel asks for: about its width in pixels."""


def rows() -> Iterator[BenchmarkRow]:
    """A row a dashboard, its variables filled in with the newest run and all else. None without a Prometheus."""
    url = os.environ.get("PROMETHEUS_URL", "http://127.0.0.1:9090")
    try:
        runs = sorted(one["metric"]["run"] for one in _query(url, "query", query="max by (run) (clientlab_run_info)"))
    except urllib.error.URLError as error:
        print(f"dashboards: left out, {url}: {error.reason}; docker compose up, or set PROMETHEUS_URL", file=sys.stderr)
        return
    if not runs:
        print(f"dashboards: left out, {url} knows no finished run; run some in the lab", file=sys.stderr)
        return
    for path in sorted(_FOLDER.glob("*.json")):
        dashboard = json.loads(path.read_text(encoding="utf-8"))
        took = [_milliseconds(url, dashboard, runs) for _ in range(ROUNDS)]
        count = sum(len(panel["targets"]) for panel in dashboard["panels"])
        name = f"{path.stem}: its {count} queries together, {len(runs)} runs held"
        middle = median(took)
        yield BenchmarkRow(
            name, middle, min(took), max(took), f"range of {ROUNDS}", f"<= {LIMIT:g}", middle <= LIMIT, "ms"
        )


def _milliseconds(url: str, dashboard: dict[str, Any], runs: list[str]) -> float:
    seconds = 60.0 * _minutes(dashboard["time"]["from"])
    began = time.perf_counter()
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            expression = _filled(target["expr"], runs, seconds)
            if target["instant"]:
                _query(url, "query", query=expression)
            else:
                now, step = time.time(), max(1.0, seconds / _POINTS)
                _query(url, "query_range", query=expression, start=now - seconds, end=now, step=step)
    return (time.perf_counter() - began) * 1000


def _minutes(relative: str) -> float:
    found = re.fullmatch(r"now-(\d+)([mh])", relative)
    if found is None:
        raise ValueError(f"{relative!r} is no time that a dashboard of ours begins at")
    return float(found[1]) * (60 if found[2] == "h" else 1)


def _filled(expression: str, runs: list[str], seconds: float) -> str:
    newest = runs[-1]
    values = {
        "$__range": f"{seconds:.0f}s",
        "$experiment": re.sub(r"^\d{8}-\d{9}-|-[0-9a-f]{4}$", "", newest),
        "$baseline": newest,
        "$runs": ".*",
        "$run": newest,
        "$strategy": ".*",
        "$upstream": ".*",
        "$route": ".*",
    }
    for name, value in values.items():
        expression = expression.replace(name, value)
    return expression


def _query(url: str, path: str, **words: Any) -> list[Any]:
    with urllib.request.urlopen(f"{url}/api/v1/{path}?{urllib.parse.urlencode(words)}", timeout=30) as answer:  # noqa: S310 - named by whoever measures
        found: list[Any] = json.load(answer)["data"]["result"]
    return found
