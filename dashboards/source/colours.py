"""A strategy's colour, the same on every panel, on every dashboard and in every report.

A series is named by its legend, which contains the strategy (see `clientlab.results.labels`). Each colour is one
override, for all series whose legend ends with one of its strategies, or has one before a colon (see
`house.with_interval`). Settings and places on an axis change no colour, and the proxied routes have dashes. Grafana
colours a strategy that is not listed by its name.
"""

from __future__ import annotations

import re

from grafana_foundation_sdk.models import dashboard as model

from clientlab.reports.charts.chart_data import HUES, colour_of
from clientlab.strategies import STRATEGIES, STREAM_STRATEGIES

_NAMES = dict.fromkeys([*STRATEGIES, *STREAM_STRATEGIES, *sorted(name for hue in HUES for name in hue.strategies)])
DASHES = model.DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [8, 6]})
_DASHED = r"\(([^)]*, )?proxy(-tls)?\)"


def overrides(*, dashes: bool = False) -> list[tuple[str, list[model.DynamicConfigValue]]]:
    """Patterns of display names, as Grafana writes them, and the properties of such a series."""
    found = []
    for place, hue in enumerate(HUES):
        names = "|".join(re.escape(name) for name in _NAMES if colour_of(name) == place)
        fixed = model.DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": hue.either})
        found.append((rf"/(^|· )({names})(\?.*)?( \(.*\))?(\[.*\])?(: .*)? *$/", [fixed]))
    if dashes:
        found.append((f"/{_DASHED}/", [DASHES]))
    return found
