"""The bottleneck of an arm as reports show it, with the shares that led to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

from clientlab import units
from clientlab.results.trial import Trial

_NAMES = {
    "client-bound": "client",
    "proxy-bound": "proxy",
    "upstream-bound": "upstream",
    "link-bound": "link's process",
    "bandwidth-bound": "link's bandwidth",
    "latency-bound": "latency",
    "client-connections": "client's connections",
    "client-lock": "client's lock",
    "upstream-threads": "upstream's threads",
    "on-schedule": "none, on schedule",
    "behind-schedule": "behind schedule",
}
"""Verdicts whose name in reports differs."""

_PARTS = {
    "client": "client",
    "link": "link",
    "proxy": "proxy",
    "upstream": "upstream",
    "latency": "delays",
    "ceiling": "ceiling",
}
"""Shares that are always shown where they are known."""

_DECIDING = {
    "bandwidth-bound": ("bandwidth", "bandwidth"),
    "client-connections": ("connections", "connections"),
    "client-lock": ("waiting", "waiting in the client"),
    "upstream-threads": ("upstream_threads", "threads"),
    "machine": ("machine", "machine"),
    "outside": ("outside", "outside"),
}
"""Verdict → the further share that led to it, and its name."""


def name_of(verdict: str | None) -> str:
    """The verdict in a table."""
    return units.UNKNOWN if verdict is None else _NAMES.get(verdict, verdict)


def shares_of(trials: Iterable[Trial]) -> dict[str, float]:
    """Median of each busy share over the trials that have it."""
    found: dict[str, list[float]] = {}
    for trial in trials:
        for part, share in trial.busy.items():
            found.setdefault(part, []).append(share)
    return {part: float(median(shares)) for part, shares in found.items()}


def shown(verdict: str | None, shares: Mapping[str, float]) -> str:
    """The shares behind a verdict, the one that decided first: ``threads 99 %, delays 12 %, upstream 9 %``."""
    parts = sorted(((shares[part], name) for part, name in _PARTS.items() if part in shares), reverse=True)
    deciding, name = _DECIDING.get(verdict or "", ("", ""))
    if deciding in shares:
        parts.insert(0, (shares[deciding], name))
    return ", ".join(f"{name} {100 * share:.0f} %" for share, name in parts) or units.UNKNOWN
