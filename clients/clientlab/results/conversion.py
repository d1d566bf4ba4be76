"""Run files of older formats, converted to the present one.

Format history
    1   first version
    2   arms have names, axes and controls; claims, source, what was shortened or changed; a trial names its arm
    3   a trial whose worker vanished has the status `lost`, in place of `failed` and a reason that begins with
        ``worker lost``; while a run goes on, its finished trials lie beside its file (see `store`)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FORMAT = 3
"""The format of run files written by this version; `Run.format` repeats it as the one valid value."""

_LOST = "worker lost: "


class UnknownFormat(ValueError):
    """A document of no format that this version reads."""


_Document = dict[str, Any]


def converted(document: _Document) -> _Document:
    """The document in the present format. Raises UnknownFormat.

    KeyError, TypeError, AttributeError and any other ValueError mean a damaged document.
    """
    version = document.get("format")
    if type(version) is not int or not 1 <= version <= FORMAT:
        raise UnknownFormat(f"format {version!r}, and this clientlab reads formats 1 to {FORMAT}")
    for step in _STEPS[version - 1 :]:
        document = step(document)
    return document


def _with_named_arms(document: _Document) -> _Document:
    """Format 1 to 2: an arm is called by its strategy, and by each part of its way that the experiment varies."""
    arms = document["experiment"]["arms"]
    ways = [(arm["workload"], arm["upstream"], arm["route"]) for arm in arms]
    counts = [len(set(values)) for values in zip(*ways, strict=True)]

    def name(part: _Document) -> str:
        way = (part["workload"], part["upstream"], part["route"])
        varied = [value for value, count in zip(way, counts, strict=True) if count > 1]
        return f"{part['strategy']} ({', '.join(varied)})" if varied else str(part["strategy"])

    named = [arm | {"name": name(arm), "label": arm["strategy"], "group": arm["workload"]} for arm in arms]
    return document | {
        "format": 2,
        "experiment": document["experiment"] | {"arms": named},
        "trials": [trial | {"arm": name(trial)} for trial in document.get("trials", [])],
    }


def _with_lost_trials(document: _Document) -> _Document:
    """Format 2 to 3: lost trials have a status of their own."""
    return document | {"format": 3, "trials": [_as_lost(trial) for trial in document.get("trials", [])]}


def _as_lost(trial: _Document) -> _Document:
    reason = trial.get("reason")
    if trial.get("status") != "failed" or not isinstance(reason, str) or not reason.startswith(_LOST):
        return trial
    return trial | {"status": "lost", "reason": reason.removeprefix(_LOST)}


_STEPS: tuple[Callable[[_Document], _Document], ...] = (_with_named_arms, _with_lost_trials)
"""Step k makes format k + 2 of format k + 1."""
