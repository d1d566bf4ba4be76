"""The nearest known names, for the message about an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a message: ``; nearest: rounds``, with up to three names; empty where no name is similar."""
    near = difflib.get_close_matches(name, list(names), cutoff=0.55)
    return f"; nearest: {', '.join(near)}" if near else ""
