"""Histories for tests: runs of one experiment on following days, drawn from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import numpy as np

from clients.documents import SURROUNDINGS, a_run, a_trial, quantiles

ARMS = ("urllib3", "requests-session", "httpx-client", "aiohttp")
BEGIN = datetime(2026, 3, 1, 2, tzinfo=UTC)


def a_history(
    runs: int = 20, *, slower: float = 1.0, since: int = 10, arms: tuple[str, ...] = ARMS, seed: int = 1, **noise: float
):
    """The runs. The first arm takes `slower` times as long from run `since` on.

    `noise`: standard deviations of `day` (all arms of a run), `own` (an arm of a run) and `round`.
    """
    draw = np.random.default_rng(seed)
    spread = {"day": 0.03, "own": 0.015, "round": 0.02} | noise
    return [_a_run(draw, at, arms, slower if at >= since else 1.0, spread) for at in range(runs)]


def _a_run(draw, at: int, arms: tuple[str, ...], slower: float, spread: Mapping[str, float]):
    day, trials = draw.normal(0, spread["day"], 3), []
    for index, arm in enumerate(arms):
        own = day + draw.normal(0, spread["own"], 3)
        for number in range(1, 6):
            wall, cpu, late = np.exp(own + draw.normal(0, spread["round"], 3))
            factor = 1.0 if index else slower
            trials.append(
                a_trial(
                    arm, number, float(wall * factor), cpu_seconds=float(cpu) / 2, order=len(trials),
                    latency_seconds=quantiles(float(late) / 500, float(late) / 100),
                )
            )  # fmt: skip
    return on_day(a_run(*trials, name=f"{BEGIN + timedelta(days=at):%Y%m%d-%H%M%S}-nightly"), at)


def on_day(run, at: int, **surroundings):
    """The run as one of that day, finished, on a host of its own."""
    where = SURROUNDINGS.model_copy(update={"host": f"runner-{at}", **surroundings})
    created = (BEGIN + timedelta(days=at)).isoformat(timespec="milliseconds")
    return run.model_copy(update={"created": created, "status": "done", "surroundings": where})


def saved(store, runs):
    """The runs in a results folder, which is returned."""
    for run in runs:
        store.claim(run.run)
        store.save(run)
    return store
