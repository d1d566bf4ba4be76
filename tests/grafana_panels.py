"""The dashboards' files: their panels and queries."""

from __future__ import annotations

import json

from running import ROOT

FOLDER = ROOT / "dashboards" / "grafana" / "dashboards"
DASHBOARDS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(FOLDER.glob("*.json"))
}


def panels(name: str) -> list[dict]:
    """Return the panels of a dashboard, including those in closed rows."""
    rows = DASHBOARDS[name]["panels"]
    return [
        one
        for panel in rows
        for one in (panel["panels"] if panel["type"] == "row" else [panel])
    ]


def expressions(name: str) -> list[str]:
    """Return the PromQL of all panels of a dashboard."""
    return [target["expr"] for panel in panels(name) for target in panel["targets"]]
