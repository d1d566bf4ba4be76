"""Writes every dashboard's JSON to dashboards/grafana/dashboards/."""

from __future__ import annotations

from pathlib import Path

from dashboards.source import compare, experiment, live, servers
from dashboards.source.house import as_json

FOLDER = Path(__file__).resolve().parents[1] / "grafana" / "dashboards"
DASHBOARDS = {"live": live, "compare": compare, "servers": servers, "experiment": experiment}


def files() -> dict[Path, str]:
    """The file of each dashboard and what is to be in it."""
    return {FOLDER / f"{name}.json": as_json(module.dashboard()) for name, module in DASHBOARDS.items()}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
