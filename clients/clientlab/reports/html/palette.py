"""One look for each strategy, the same in every chart of a report: a colour, and a dash where colours run out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clientlab.runs.document import Run

# Okabe and Ito's palette (jfly.uni-koeln.de/color) without its yellow, which is lost on white; the style sheet
# has a lighter and a darker form of each, so that every line has a contrast of 3 on its ground.
COLOURS = 7
DASHES = 5


@dataclass(frozen=True)
class Look:
    """Numbers of a colour and of a dash, as the style sheet has them."""

    colour: int = 0
    dash: int = 0

    @property
    def names(self) -> str:
        """Classes of the style sheet."""
        return f"c{self.colour} d{self.dash}"


def looks_of(run: Run) -> dict[str, Look]:
    """Strategy → look, in the experiment's order: it does not change with the figures.

    Arms whose strategies differ in settings only (``requests-session@threads?pool=8``) have one colour.
    """
    strategies = dict.fromkeys([arm.strategy for arm in run.experiment.arms] + [trial.strategy for trial in run.trials])
    bare = {name: place for place, name in enumerate(dict.fromkeys(map(_bare, strategies)))}
    return {name: Look(bare[_bare(name)] % COLOURS, bare[_bare(name)] // COLOURS % DASHES) for name in strategies}


def distinct(looks: Iterable[Look]) -> list[Look]:
    """The looks of one chart: where the same comes again, with its colour and another dash."""
    seen: dict[Look, int] = {}
    found = []
    for look in looks:
        found.append(_again(look, seen.setdefault(look, 0)))
        seen[look] += 1
    return found


def _bare(strategy: str) -> str:
    return strategy.partition("?")[0]


def _again(look: Look, times: int) -> Look:
    return Look(look.colour, (look.dash + times) % DASHES)
