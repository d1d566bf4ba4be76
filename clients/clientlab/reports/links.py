"""The links of a run: what difference they make to arms that are otherwise equal."""

from __future__ import annotations

from itertools import groupby

from clientlab import units
from clientlab.judging.contrasts import Contrast, contrasts, link_pairs
from clientlab.results.document import Run


def sentences(run: Run) -> list[str]:
    """How many times as long each arm takes as behind the first link, with intervals that hold together."""
    found = contrasts(run, link_pairs(run.experiment.arms))
    return [_sentence(list(family)) for _, family in groupby(found, lambda one: one.base.name)]


def _sentence(family: list[Contrast]) -> str:
    """All arms that have one base, in a sentence."""
    known = [f"{one.arm.name} takes {units.ratio_of(one.time)} times" for one in family if one.time is not None]
    base, figure = family[0].base.name, family[0].figure.label
    if not known:
        return f"No round has trials without errors of {base} and of the same strategy behind another link."
    return f"{'; '.join([f'{known[0]} the {figure} of {base}', *known[1:]])}."
