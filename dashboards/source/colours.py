"""A strategy's colour, the same on every panel and dashboard.

Series are called by their legend, in which the strategy stands (see `clientlab.runs.labels`); each colour is an
override for all whose legend ends with one of its strategies. Settings and places on an axis change no colour, and
the proxied routes have dashes. There are fewer colours than strategies: those of one bundled experiment all differ, the
others share them out, first among those with one executor. What is listed nowhere, Grafana colours by its name.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from grafana_foundation_sdk.models import dashboard as model

from clientlab.runs.experiment_file import bundled, read_experiment
from clientlab.strategies import STRATEGIES, find

# Okabe and Ito's palette (jfly.uni-koeln.de/color), which the colour-blind can tell apart. Grafana shows the same
# colours on dark and on white: its black is a grey here, and its yellow a darker one.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C8C8C", "#B8A800")
DASHES = model.DynamicConfigValue(id_val="custom.lineStyle", value={"fill": "dash", "dash": [8, 6]})
_DASHED = r"\(([^)]*, )?proxy(-tls)?\)"


@functools.cache
def of_strategies() -> dict[str, str]:
    """Listed strategy → colour. Raises ValueError where a bundled experiment has more than there are colours."""
    together = [_strategies(path) for path in bundled().values()]
    chosen: dict[str, str] = {}
    most_neighbours = sorted(dict.fromkeys(itertools.chain(*together)), key=lambda name: -_degree(name, together))
    for name in most_neighbours:
        taken = [chosen[other] for group in together if name in group for other in group if other in chosen]
        chosen[name] = _least_used(chosen, [colour for colour in COLOURS if colour not in taken])
    for name, strategy in STRATEGIES.items():
        if name not in chosen:
            alike = {other: colour for other, colour in chosen.items() if find(other).executor == strategy.executor}
            chosen[name] = _least_used(alike, sorted(COLOURS, key=list(chosen.values()).count))
    return chosen


def _strategies(experiment: Path) -> list[str]:
    return list(dict.fromkeys(arm.strategy.partition("?")[0] for arm in read_experiment(experiment).arms()))


def _degree(name: str, together: Sequence[Sequence[str]]) -> int:
    return len({other for group in together if name in group for other in group})


def _least_used(chosen: Mapping[str, str], colours: Sequence[str]) -> str:
    used = list(chosen.values())
    return min(colours, key=used.count)


def overrides(*, dashes: bool = False) -> list[tuple[str, list[model.DynamicConfigValue]]]:
    """What the display name matches, as Grafana writes a pattern, and the properties of such a series."""
    found = []
    colours = of_strategies()
    for colour in COLOURS:
        names = "|".join(re.escape(name) for name, its in colours.items() if its == colour)
        fixed = model.DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": colour})
        found.append((rf"/(^|· )({names})(\?.*)?( \(.*\))?(\[.*\])?$/", [fixed]))
    if dashes:
        found.append((f"/{_DASHED}/", [DASHES]))
    return found
