"""Arms whose clients received bodies of different sizes for the same requests: they did
not do the same work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median, median_high

from clientlab.trial.result import Trial

_LEAST_DIFFERENCE = 1.1  # smaller ones may come from a server whose answers vary
_ADVICE = "each must read the whole body, and decode it (--decode)"


def find_unlike_bodies(arms: Mapping[str, Sequence[Trial]]) -> dict[str, str]:
    """Return why arms cannot be ranked with the others of equal load (name → finished
    trials).

    Their clients received other numbers of bytes per request than most: by 10 %, and in
    every round. Of two arms, the one with fewer bytes is left out. Parsers of streams
    hand over other bytes, so streams are not judged.
    """
    sizes = {}
    for name, trials in arms.items():
        if known := [
            _bytes_per_request(trial) for trial in trials if _has_bodies(trial)
        ]:
            sizes[name] = known
    typical = {name: median(known) for name, known in sizes.items()}
    if len(typical) < 2:
        return {}
    usual = median_high(typical.values())
    norm = next(name for name, size in typical.items() if size == usual)
    found = {}
    for name, size in typical.items():
        less, more = sorted((name, norm), key=typical.__getitem__)
        is_apart = max(sizes[less]) < min(sizes[more])
        if is_apart and typical[more] > _LEAST_DIFFERENCE * typical[less]:
            counts = f"{size:,.0f} bytes per request, and {norm} {usual:,.0f}"
            found[name] = f"its client received {counts}; {_ADVICE}"
    return found


def _has_bodies(trial: Trial) -> bool:
    figures = trial.figures
    is_known = figures.bytes_received is not None and figures.requests > 0
    return is_known and not figures.errors and figures.stream is None


def _bytes_per_request(trial: Trial) -> float:
    return (trial.figures.bytes_received or 0) / trial.figures.requests
