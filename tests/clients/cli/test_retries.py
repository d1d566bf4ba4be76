"""Strategies that send a failed request again: what the caller gets, and what the upstream counts."""

from __future__ import annotations

import pytest

from clientlab.results.figures import BY_KEY
from clientlab.workload.faults import Faults
from clientlab.workload.seeds import in_round

POLICIES = (
    "requests-session?retry=urllib3&attempts=3&statuses=503",
    "niquests?retry=niquests&attempts=3&statuses=503&jitter=full",
    "aiohttp@workers?retry=aiohttp-retry&backoff=0",
    "http.client@threads?retry=tenacity",
    "aiohttp@workers?retry=tenacity&attempts=3",
    "httpx2-async@workers?retry=stamina&attempts=3&backoff=0&jitter=none",
)


def values(trial, *keys):
    """Figures of a trial."""
    return [BY_KEY[key].of(trial) for key in keys]


@pytest.mark.slow
def test_goodput_and_amplification_are_those_of_the_model(clientlab, results):
    """With p = 30 % and n = 3: 1 - p^n and (1 - p^n) / (1 - p), within 2 %, and exactly as the draws decide."""
    words = [word for name in POLICIES for word in ("-t", name)]
    said = clientlab(
        "run", *words, "-t", "http.client", "--upstream", "aiohttp?workers=2", "--fault", "status=503:30%", "-n", 3000,
        "-c", 8, "--rounds", 1, "--seed", 7,
    )  # fmt: skip
    assert said.code == 0, said.err
    run, p, n = results.read("last"), 0.3, 3
    seed = in_round(run.experiment.workloads["workload"], 7, 1).seed
    drawn = [Faults.parse("status=503:30%").of_attempts(seed, n)(k) for k in range(3000)]
    needed = [next((j for j, fault in enumerate(faults, 1) if fault is None), None) for faults in drawn]
    trials = {trial.strategy: trial for trial in run.trials}
    for name in POLICIES:
        trial = trials[name]
        amplification, failed, duplicates = values(trial, "amplification", "errors", "duplicates")
        assert amplification == sum(count or n for count in needed) / 3000
        assert failed == needed.count(None) / 3000
        assert amplification == pytest.approx((1 - p**n) / (1 - p), rel=0.02)
        assert 1 - failed == pytest.approx(1 - p**n, rel=0.02)
        assert duplicates == 0
        assert values(trial, "served")[0] == pytest.approx((1 - failed) * 3000 / trial.wall_seconds)
    alone = trials["http.client"]
    assert values(alone, "amplification", "duplicates") == [1, 0]
    assert alone.faults.by_fault["status=503"].asked == sum(faults[0] is not None for faults in drawn)


@pytest.mark.slow
def test_a_post_that_is_sent_again_is_a_duplicate(clientlab, results):
    """A package around the client repeats any method; urllib3 repeats no POST by default."""
    said = clientlab(
        "run", "-t", "urllib3?retry=tenacity", "-t", "urllib3?retry=urllib3", "--upstream", "flask", "--method", "POST",
        "--fault", "reset:50%", "-n", 60, "--rounds", 1, "--payload-size", 10,
    )  # fmt: skip
    assert said.code == 0, said.err
    again, once = sorted(results.read("last").trials, key=lambda trial: "tenacity" not in trial.strategy)
    duplicates, amplification = values(again, "duplicates", "amplification")
    assert duplicates == again.upstream_use.repeats > 0
    assert amplification == pytest.approx(1 + duplicates / 60)
    assert values(once, "duplicates", "amplification") == [0, 1]


@pytest.mark.slow
def test_retries_stay_within_their_budget(clientlab, results):
    """Where each attempt fails, a budget of 10 % sends 110 requests for 100."""
    said = clientlab(
        "run", "-t", "aiohttp@workers?retry=tenacity&budget=10%25", "-t", "aiohttp@workers?retry=tenacity",
        "--upstream", "aiohttp", "--fault", "status=503:95%", "-n", 1000, "-c", 4, "--rounds", 1,
    )  # fmt: skip
    assert said.code == 0, said.err
    limited, free = sorted(results.read("last").trials, key=lambda trial: "budget" not in trial.strategy)
    assert values(limited, "amplification")[0] == pytest.approx(1.1, abs=0.01)
    assert values(free, "amplification")[0] == pytest.approx((1 - 0.95**3) / 0.05, rel=0.02)


@pytest.mark.slow
def test_only_connections_that_fail_are_opened_again_by_httpx(clientlab, results):
    """An answer, or a reset behind the request, is the caller's."""
    said = clientlab(
        "run", "-t", "httpx-client?retry=httpx&attempts=3", "--upstream", "aiohttp", "--fault", "reset:20%", "-n", 100,
        "--rounds", 1,
    )  # fmt: skip
    assert said.code == 0, said.err
    (trial,) = results.read("last").trials
    assert values(trial, "amplification") == [1]
    assert trial.faults.by_fault["reset"].met == {"reset": trial.faults.by_fault["reset"].asked}


def test_an_upstream_with_a_rate_refuses_what_is_beyond(clientlab, results):
    """Its 429 are errors of the caller, and counted by the upstream."""
    said = clientlab("run", "-t", "urllib3", "--upstream", "aiohttp?rate=10&burst=40", "-n", 60, "--rounds", 1)
    assert said.code == 0, said.err
    (trial,) = results.read("last").trials
    assert trial.upstream_use.limited == trial.errors["status-4xx"] > 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "-t", "requests-session?retry=httpx"), "it has none, urllib3, tenacity, stamina"),
        (("run", "-t", "aiohttp?retry=tenacity", "--read", "chunks"), "sends requests again"),
        (("conform", "urllib3?retry=urllib3"), "leave out retry"),
    ],
)
def test_retries_that_can_not_be_are_refused_in_one_line(clientlab, words, says):
    """With exit code 2."""
    said = clientlab(*words)
    assert said.code == 2
    assert says in said.err
    assert said.err.count("\n") == 1


@pytest.mark.slow
def test_the_load_after_an_outage_is_relative_to_that_before(clientlab, results):
    """An open load that waits out the outage sends its backlog at once, and one that drops it does not."""
    words = ("--upstream", "aiohttp", "--rate", "200/s", "-d", "3s", "-c", 40, "--rounds", 1)
    fault = ("--fault", "outage=600ms@1s", "--timeout", "5s")
    said = clientlab(
        "run", "-t", "aiohttp@workers?retry=tenacity&attempts=10&backoff=50ms", "-t", "aiohttp@workers", *words, *fault
    )
    assert said.code == 0, said.err
    again, alone = sorted(results.read("last").trials, key=lambda trial: "tenacity" not in trial.strategy)
    assert again.load_after_outage > 1.1
    assert alone.load_after_outage == pytest.approx(1, abs=0.1)
    assert again.errors == {}
    assert sum(alone.errors.values()) == pytest.approx(120, rel=0.2)
