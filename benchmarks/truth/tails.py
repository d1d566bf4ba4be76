"""How far the rate of a closed load with a duration is from its steady rate, where the last responses come late.

Requests in flight, each replaced when it ends, without overhead: the steady rate is their number over the mean delay.
That of stragglers is the rate of the other requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.figures import BenchmarkRow
from benchmarks.truth.noise import Draw, Floats
from clientlab.running.whole_load import whole_load
from clientlab.samples.log_reader import RECORD, Samples

IN_FLIGHT = 64
WITHIN = 0.02
_RUNS = 200

Delays = Callable[[Draw], Floats]
"""Seconds of as many requests as may be in flight."""


def _lognormal(draw: Draw) -> Floats:
    return 0.06 * np.exp(draw.normal(0, 1, IN_FLIGHT))


def _straggling(draw: Draw) -> Floats:
    return np.where(draw.random(IN_FLIGHT) < 1 / 20_000, 30.0, 0.032)


CASES: dict[str, tuple[Delays, float, float]] = {
    "exponential:100ms, -d 5s": (lambda draw: draw.exponential(0.1, IN_FLIGHT), 0.1, 5.0),
    "lognormal:60ms,1, -d 2s": (_lognormal, 0.06 * np.exp(0.5), 2.0),
    "30 s in one of 20,000 requests, -d 10s": (_straggling, 0.032, 10.0),
    "1s, -d 4.9s": (lambda _: np.full(IN_FLIGHT, 1.0), 1.0, 4.9),
}
"""Delays, their mean without stragglers, and the duration."""


def rows(seed: int) -> Iterator[BenchmarkRow]:
    """Two rows for each case: the lab's rate, and the number of requests over the wall time."""
    for name, (delays, mean, duration) in CASES.items():
        draw = np.random.default_rng([seed, int(duration)])
        found = [_rates(closed_loop(draw, delays, duration), duration) for _ in range(_RUNS)]
        lab, wall = (np.array(rates) * mean / IN_FLIGHT for rates in zip(*found, strict=True))
        yield _row(f"rate over steady rate, {name}", lab, target=True)
        yield _row("the same over the wall time", wall, target=False)
    yield _apart()


def closed_loop(draw: Draw, delays: Delays, duration: float) -> Samples:
    """The samples of a trial that begins at 0."""
    starts, lengths, now = [], [], np.zeros(IN_FLIGHT)
    while (going := now < duration).any():
        took = delays(draw)
        starts.append(now[going])
        lengths.append(took[going])
        now = np.where(going, now + took, now)
    made = np.zeros(sum(map(len, starts)), RECORD)
    made["start"], made["seconds"], made["done"] = np.concatenate(starts), np.concatenate(lengths), 1
    return Samples(made, np.arange(len(made)), {}, {}, {})


def _rates(found: Samples, duration: float) -> tuple[float, float]:
    """By the lab, and over the wall time."""
    loaded = whole_load(found, np.zeros(1), duration)
    wall = float((found.records["start"] + found.records["seconds"]).max())
    return 0.0 if loaded is None else loaded.requests / loaded.seconds, len(found.records) / wall


def _apart() -> BenchmarkRow:
    """Two shards with 5,000 requests each, of which one is done after 5 s and the other after 20 s."""
    made = np.zeros(10_000, RECORD)
    steps = np.concatenate([np.full(5_000, 1e-3), np.full(5_000, 4e-3)])
    made["start"] = np.concatenate([np.arange(5_000) * 1e-3, np.arange(5_000) * 4e-3])
    made["seconds"], made["done"] = steps, 1
    loaded = whole_load(Samples(made, np.arange(len(made)), {}, {}, {}), np.zeros(1), 5.0)
    return _row(
        "rate over steady rate, shards of 5 s and 20 s",
        np.array([loaded.requests / loaded.seconds / 1250 if loaded else 0.0]),
        target=True,
    )


def _row(name: str, shares: Floats, *, target: bool) -> BenchmarkRow:
    mean, reach = float(shares.mean()), 1.96 * float(shares.std()) / np.sqrt(len(shares))
    met = not target or abs(mean - 1) <= WITHIN
    spread = f"95 % of the mean of {len(shares)} trials"
    return BenchmarkRow(name, mean, mean - reach, mean + reach, spread, "0.98 to 1.02" if target else "none", met=met)
