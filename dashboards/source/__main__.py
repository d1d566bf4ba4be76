"""Write the JSON files of the dashboards: `python -m dashboards.source`."""

from __future__ import annotations

import json
from pathlib import Path

from dashboards.source import comparison, live
from grafana_foundation_sdk.cog.encoder import JSONEncoder

FOLDER = Path(__file__).parents[1] / "grafana" / "dashboards"


def make_files() -> dict[Path, str]:
    """Return the path and the text of each file."""
    files = {}
    for name, made in (
        ("live", live.make_dashboard()),
        ("comparison", comparison.make_dashboard()),
    ):
        text = json.dumps(
            made.build(), cls=JSONEncoder, indent=1, sort_keys=True, ensure_ascii=False
        )
        files[FOLDER / f"{name}.json"] = f"{text}\n"
    return files


if __name__ == "__main__":
    for path, text in make_files().items():
        path.write_text(text, encoding="utf-8")
