"""The nearest known names, for the message about an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST, _LEAST_RATIO = 3, 0.55
_AS_NEAR = 0.05
"""Names whose similarity is this much less than that of the nearest one are no help beside it."""


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a message: ``; nearest: rounds``, with up to three names; empty where no name is similar."""
    near = difflib.get_close_matches(name, list(names), n=_MOST, cutoff=_LEAST_RATIO)
    ratios = [difflib.SequenceMatcher(None, one, name).ratio() for one in near]
    shown = [one for one, ratio in zip(near, ratios, strict=True) if ratio >= ratios[0] - _AS_NEAR]
    return f"; nearest: {', '.join(shown)}" if shown else ""
