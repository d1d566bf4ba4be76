"""Arms whose clients received bodies of different sizes for the same requests.

They did not do the same work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median, median_high

from clientlab.results.trial import Trial

_LEAST_DIFFERENCE = 1.1  # smaller ones may come from a server whose answers vary
_ADVICE = "each must read the whole body, and decode it (--decode)"


def find_unlike_bodies(arms: Mapping[str, Sequence[Trial]]) -> dict[str, str]:
    """Return why arms cannot be ranked with the others of equal load.

    `arms`: name → finished trials. Their clients received other numbers of bytes per
    request than most: by 10 %, and in every round. Of two arms, the one with fewer
    bytes is left out. Parsers of streams hand over other bytes, so streams are not
    judged.
    """
    sizes: dict[str, list[float]] = {}
    for name, trials in arms.items():
        for trial in trials:
            size = _bytes_per_request(trial)
            if size is not None:
                sizes.setdefault(name, []).append(size)
    typical = {name: median(of_arm) for name, of_arm in sizes.items()}
    if len(typical) < 2:
        return {}
    usual = median_high(typical.values())
    norm = next(name for name, size in typical.items() if size == usual)
    unlike = {}
    for name, size in typical.items():
        less, more = sorted((name, norm), key=typical.__getitem__)
        is_apart = max(sizes[less]) < min(sizes[more])
        if is_apart and typical[more] > _LEAST_DIFFERENCE * typical[less]:
            counts = f"{size:,.0f} bytes per request, and {norm} {usual:,.0f}"
            unlike[name] = f"its client received {counts}; {_ADVICE}"
    return unlike


def _bytes_per_request(trial: Trial) -> float | None:
    """Return the size of the trial's bodies; None if it is not judged by it."""
    figures = trial.figures
    if figures.bytes_received is None or not figures.requests:
        return None
    if figures.errors or figures.stream is not None:
        return None
    return figures.bytes_received / figures.requests
