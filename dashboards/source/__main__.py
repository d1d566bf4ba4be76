"""Write the JSON files of the dashboards: `python -m dashboards.source`."""

from __future__ import annotations

import json
from pathlib import Path

from dashboards.source import comparison, live
from grafana_foundation_sdk.cog.encoder import JSONEncoder

FOLDER = Path(__file__).parents[1] / "grafana" / "dashboards"


def dashboard_files() -> dict[Path, str]:
    """Return the path and the text of each file."""
    made = {"live": live.dashboard(), "comparison": comparison.dashboard()}
    return {
        FOLDER / f"{name}.json": json.dumps(one.build(), cls=JSONEncoder, indent=1, sort_keys=True, ensure_ascii=False)
        + "\n"
        for name, one in made.items()
    }


if __name__ == "__main__":
    for path, text in dashboard_files().items():
        path.write_text(text, encoding="utf-8")
