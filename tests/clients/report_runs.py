"""Run documents with everything in them that a report can show."""

from __future__ import annotations

import functools

import numpy as np

from clientlab.analysis.histogram import histogram_of
from clientlab.results.document import Caution, ClaimResult, Run
from clientlab.results.plan import Arm, Source
from clientlab.results.times import Histogram
from clientlab.results.trial import Slice
from clientlab.running.quantiles import quantiles_of
from clientlab.workload.delays import Delay
from clientlab.workload.workload import Workload
from clients.documents import a_failed_trial, a_run, a_trial

_DELAY = Delay.parse("5ms")
PLACES = (1, 2, 4, 8, 16)
SLICES = 60


def a_measured_trial(strategy: str = "urllib3", number: int = 1, wall: float = 1.0, requests: int = 400, **changes):
    """A trial with histogram, overhead and course, of latencies around 5 ms."""
    return a_trial(strategy, number, wall, **(_figures(number, wall, requests) | changes))


@functools.cache
def _figures(number: int, wall: float, requests: int) -> dict[str, object]:
    seconds = np.random.default_rng(number).lognormal(-5.3 + wall / 10, 0.4, requests)
    histogram = histogram_of(seconds)
    slices = [
        Slice(at=place * wall / SLICES, requests=len(part), errors=0, p50=float(np.median(part)), p99=float(max(part)))
        for place, part in enumerate(np.array_split(seconds, SLICES))
    ]
    return {
        "requests": requests,
        "requests_per_second": requests / wall,
        "histogram": Histogram(encoded=histogram.encode().decode()),
        "latency_seconds": quantiles_of(seconds),
        "overhead_seconds": quantiles_of(seconds / 10),
        "over_time": slices,
    }


@functools.cache
def a_whole_run() -> Run:
    """Three strategies in three rounds on two routes, errors, a failed trial, a sweep, claims, cautions."""
    strategies = {"urllib3": 1.0, "pycurl": 2.0, "requests": 4.0}
    trials = [
        a_measured_trial(name, number, wall + number / 10, route=route)
        for name, wall in strategies.items()
        for number in (1, 2, 3)
        for route in ("direct", "proxy")
    ]
    errors = {"errors": {"reset": 3}, "error_examples": {"reset": "Connection reset by peer"}}
    trials[-1] = trials[-1].model_copy(update=errors)
    swept = [
        a_measured_trial("aiohttp@semaphore", number, 8 / place + place / 8, workload=f"w{place}", arm=f"sem{place}")
        for place in PLACES
        for number in (1, 2, 3)
    ]
    failed = a_failed_trial("httpx", "it could not be started", workload="workload")
    base = a_run(*trials, *swept, failed)
    return with_claims(
        base.model_copy(
            update={
                "experiment": base.experiment.model_copy(
                    update={
                        "arms": base.experiment.arms[:6] + sweep_arms(),
                        "workloads": {"workload": Workload(requests=400, delay=_DELAY, headers={"X-A": "b"})}
                        | {f"w{place}": Workload(requests=400, concurrency=place) for place in PLACES},
                        "shortened": ["requests: 4,000 became 400"],
                        "uncontrolled": ["connections of each process"],
                    }
                )
            }
        )
    )


def sweep_arms() -> list[Arm]:
    """The arms of a sweep of concurrency."""
    return [
        Arm(
            name=f"sem{place}", strategy="aiohttp@semaphore", upstream="aiohttp", route="direct", workload=f"w{place}",
            axes={"concurrency": place},
        )
        for place in PLACES
    ]  # fmt: skip


def with_claims(run: Run) -> Run:
    """The run with a claim of each verdict, a source and a caution."""
    rest = {"source": "An article", "kind": "less", "figure": "wall_seconds", "rounds": 3}
    claims = [
        ClaimResult(name="one", text="urllib3 is faster", control=False, published="2 s against 4 s",
              verdict="supported", ratio=2.0, interval=(1.8, 2.2), measured="1.2 s against 2.2 s", **rest),
        ClaimResult(name="two", text="requests is faster", control=False, published=None, verdict="contradicted",
              ratio=0.5, interval=(0.4, 0.6), measured="4.2 s against 2.2 s", **rest),
        ClaimResult(name="three", text="they are alike", control=True, published=None, verdict="inconclusive",
              measured="nothing yet", settles="12 rounds", **rest),
    ]  # fmt: skip
    source = Source(title="Fast requests", authors="A. Uthor", date="2021", url="https://example.org/fast")
    return run.model_copy(
        update={
            "claims": claims,
            "cautions": [Caution(kind="busy", text="something else was running", advice="end it")],
            "experiment": run.experiment.model_copy(update={"source": source}),
        }
    )


def a_hostile_run(words: str) -> Run:
    """A run with these words wherever a user, a server or a library can put some."""
    run = a_whole_run()
    trial = a_measured_trial(
        words, workload=words, upstream=words, errors={words: 1}, error_examples={words: words}, requests=400
    )
    failed = a_failed_trial("b", words)
    claims = [
        claim.model_copy(update=dict.fromkeys(("name", "text", "source", "published", "measured", "settles"), words))
        for claim in run.claims
    ]
    arms = [
        Arm(
            name=f"{words}{place}", strategy=words, upstream=words, route="direct", workload=words,
            axes={words: place, "n": words},
        )
        for place in PLACES
    ]  # fmt: skip
    swept = [a_measured_trial(words, workload=words, upstream=words, arm=arm.name) for arm in arms]
    settings = run.experiment.model_copy(
        update={
            "question": words,
            "command": words,
            "name": words,
            "arms": arms,
            "workloads": {words: Workload(path=words, headers={words: words}, body=words), **run.experiment.workloads},
            "shortened": [words],
            "uncontrolled": [words],
            "source": Source(title=words, authors=words, date=words, url=words),
        }
    )
    surroundings = run.surroundings.model_copy(
        update={"host": words, "cpu_model": words, "libraries": {words: words}, "programs": {words: words}}
    )
    return run.model_copy(
        update={
            "run": words, "experiment": settings, "surroundings": surroundings, "claims": claims,
            "cautions": [Caution(kind=words, text=words, advice=words)], "trials": [trial, failed, *swept],
        }
    )  # fmt: skip
