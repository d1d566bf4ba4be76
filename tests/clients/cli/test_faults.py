"""`clientlab run --fault` on the lab's own upstreams, beside a model of the faults.

The model shares no code with the lab: it repeats the documented draw for each attempt.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter

import pytest

from clientlab.workload.workload import reseed_for_round

pytestmark = pytest.mark.real

CALLS = 80
DELAY = 0.005
MOST_ATTEMPTS = 3
RETRYING = f"retry=tenacity&attempts={MOST_ATTEMPTS}&backoff=1ms"


def draw(seed: int, call: int, attempt: int) -> float:
    packed = struct.pack("<qqq", seed, call, attempt)
    digest = hashlib.blake2b(packed, digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53


def kind_of(number: float) -> str:
    """What ``503:10%; close:10%`` makes of a number."""
    if number < 0.1:
        return "503"
    return "close" if number < 0.2 else "good"


def model(seed: int, most_attempts: int) -> tuple[Counter, int, int]:
    """Return the attempts by kind, the calls that are lost, and the duplicates."""
    kinds: Counter[str] = Counter()
    lost = duplicates = 0
    for call in range(CALLS):
        took_effect = 0
        for attempt in range(most_attempts):
            kind = kind_of(draw(seed, call, attempt))
            kinds[kind] += 1
            took_effect += kind != "503"
            if kind == "good":
                break
        lost += kind != "good"
        duplicates += max(0, took_effect - 1)
    return kinds, lost, duplicates


def spaced(text: str) -> str:
    return " ".join(text.split())  # lines may be folded anywhere


def seed_of(run) -> int:
    workload = next(iter(run.experiment.workloads.values()))
    return reseed_for_round(workload, run.experiment.seed, 1).seed


@pytest.mark.parametrize("upstream", ["aiohttp", "flask"])
def test_attempts_duplicates_and_lost_calls_are_those_of_the_model(
    clientlab, results, upstream
):
    said = clientlab(
        *("run", "-t", f"requests-session?{RETRYING}"),
        *("-t", "aiohttp", "-t", "requests-session", "--upstream", upstream),
        *("--fault", "503:10%", "--fault", "close:10%", "--delay", f"{DELAY}s"),
        *("--method", "POST", "-n", CALLS, "--rounds", 1),
    )
    assert said.code == 0, said.err
    run = results.read("last")
    for trial in run.trials:
        retries = "retry" in trial.planned.strategy
        most_attempts = MOST_ATTEMPTS if retries else 1
        kinds, lost, duplicates = model(seed_of(run), most_attempts)
        found = trial.attempts
        assert {kind: count for kind, count in found.kinds.items() if count} == kinds
        assert found.calls == CALLS
        assert found.attempts == kinds.total()
        assert found.repeated == duplicates
        assert trial.figures.failed == lost
        # Nothing but the work takes time, so the goodput cannot be above the model's.
        work = DELAY * (kinds["good"] + kinds["close"])
        assert trial.figures.requests_per_second <= (CALLS - lost) / work
    assert f"again {duplicates:,} times" in spaced(said.out) or not duplicates


def test_an_outage_fails_the_calls_of_its_time_and_no_others(clientlab, results):
    said = clientlab(
        *("run", "-t", "aiohttp@workers", "-c", 4, "-d", "1s", "--delay", "5ms"),
        *("--fault", "outage:0.3s..0.6s", "--rounds", 1),
    )
    assert said.code == 0, said.err
    [trial] = results.read("last").trials
    failing = [part.at for part in trial.figures.over_time if part.errors]
    assert failing
    assert min(failing) > 0.25
    assert max(failing) < 0.7
    [recovery] = trial.attempts.recoveries
    assert recovery.seconds is not None
    assert "after outage:300ms..600ms" in said.out


def test_a_proxy_shows_what_it_makes_of_a_reset(clientlab, results):
    said = clientlab(
        *("run", "-t", "requests-session", "-n", 40, "--route", "proxy"),
        *("--fault", "close:50%", "--method", "POST", "--rounds", 1),
    )
    assert said.code == 0, said.err
    [trial] = results.read("last").trials
    assert trial.attempts.statuses["502"] == trial.figures.failed


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--fault", "explode:5%"), "not a fault"),
        (("--fault", "503:60%", "--fault", "reset:60%"), "110 %|120 %"),
        (("--fault", "outage:1s..2s", "-n", 10), "duration"),
        (("--fault", "outage:1s..2s", "-d", "1500ms"), "after the trial"),
        (("--fault", "503:5%", "--url", "http://127.0.0.1:9/"), "own upstreams"),
        (("--fault", "503:5%", "--stream", "sse"), "reset, stall or outage"),
    ],
)
def test_impossible_faults_are_refused_in_one_line(clientlab, words, told):
    said = clientlab("run", "-t", "requests-session", *words)
    assert said.code == 2
    assert any(part in said.err for part in told.split("|"))
