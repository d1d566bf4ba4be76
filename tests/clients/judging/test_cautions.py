"""Cautions: each fires where it should, and only there."""

from __future__ import annotations

import pytest

from clientlab.judging.cautions import cautions_of
from clientlab.results.trial import Noise
from clientlab.workload.workload import Workload
from clients.documents import SURROUNDINGS, a_failed_trial, a_run, a_trial, quantiles


def rounds(strategy: str = "urllib3", count: int = 3, **changes):
    """Sound trials of a strategy."""
    return [a_trial(strategy, number, **changes) for number in range(1, count + 1)]


def found(*trials, load: float = 0.1, **changes) -> dict[str, str]:
    """Kind and text of each caution of a run."""
    run = a_run(*trials, **changes)
    run = run.model_copy(update={"surroundings": SURROUNDINGS.model_copy(update={"load_average": load})})
    return {caution.kind: f"{caution.text} - {caution.advice}" for caution in cautions_of(run)}


def test_a_sound_run_has_no_cautions():
    """Three rounds of long trials without errors on a quiet machine."""
    assert found(*rounds("urllib3"), *rounds("pycurl", verdict="latency-bound")) == {}


@pytest.mark.parametrize(
    ("trials", "kind"),
    [
        ([*rounds(), a_failed_trial("pycurl", "no such library")], "failed-trials"),
        ([*rounds(), *rounds("pycurl", errors={"reset": 2, "connect": 1})], "errors"),
        ([*rounds(), *rounds("pycurl", verdict="upstream-bound")], "upstream-bound"),
        ([*rounds(), *rounds("pycurl", verdict="proxy-bound")], "proxy-bound"),
        ([*rounds(), *rounds("pycurl", verdict="link-bound")], "link-bound"),
        ([*rounds(), *rounds("pycurl", verdict="upstream-threads")], "upstream-threads"),
        ([*rounds(), *rounds("pycurl", verdict="machine", cpu_seconds=1.5)], "machine"),
        ([*rounds(), *rounds("pycurl", verdict="unaccounted", busy={"unaccounted": 0.95})], "unaccounted"),
        ([*rounds(), *rounds("pycurl", verdict="start-up", busy={"startup": 0.8})], "start-up"),
        ([*rounds(), *rounds("pycurl", waits_for_connection=True)], "waits-for-connection"),
        ([*rounds(), *rounds("mine.py:fetch@threads")], "unverified"),
        (rounds(count=2), "few-rounds"),
        ([*rounds(), *rounds("pycurl", wall=0.19)], "short-trials"),
        ([*rounds(concurrency=2000, requests=2000), *rounds("sync_threads", concurrency=2000, requests=1500)],
         "fewer-requests-than-concurrency"),
        ([*rounds(), *rounds("pycurl", requests=300)], "few-requests"),
    ],
)  # fmt: skip
def test_a_reason_for_doubt_is_told_with_whom_it_concerns(trials, kind):
    """That one alone, and the sound strategy is not named in it."""
    cautions = found(*trials)
    assert list(cautions) == [kind]
    if len({trial.strategy for trial in trials}) > 1:
        assert trials[-1].strategy in cautions[kind]
        assert "urllib3" not in cautions[kind]


@pytest.mark.parametrize(("latencies", "fires"), [(quantiles(5.0, 12.0), True), (quantiles(0.01, 0.02), False)])
def test_a_trial_that_took_far_longer_than_its_duration_is_told(latencies, fires):
    """Not if a few slow requests prolonged it: the others were as quick as ever."""
    late = rounds("pycurl", wall=19.3, tail_seconds=15.3, latency_seconds=latencies, verdict="client-connections")
    cautions = found(*rounds(wall=4.1), *late, workloads={"workload": Workload(duration=4.0)})
    assert ("pycurl" in cautions.get("overlong", "")) == fires


def test_what_the_command_line_changed_of_an_experiment_is_told():
    """A caution names each field that the command line changed, with its value."""
    cautions = found(*rounds(), changed=["requests: 4000 → 50", "delay: 5ms → 1s"])
    assert list(cautions) == ["changed"]
    assert "requests: 4000 → 50; delay: 5ms → 1s" in cautions["changed"]


@pytest.mark.parametrize(
    ("noise", "fires"),
    [({"others_cpu_seconds": 0.6}, True), ({"others_cpu_seconds": 0.02}, False), ({"steal_seconds": 0.6}, True),
     ({"run_delay_seconds": 5.0, "cpu_pressure_seconds": 1.0, "involuntary_switches": 999}, False),
     ({"others_cpu_seconds": 0.6, "cpu_pressure_seconds": 0.02}, False),
     ({"others_cpu_seconds": 0.09, "seconds": 0.3}, False)],
)  # fmt: skip
def test_trials_during_which_others_took_cpu_time_are_told(noise, fires):
    """Processes or the hypervisor. Waiting alone is none: the run's own servers may take the cores.

    Nor is a core that others took on a machine where nobody waited, or what the kernel's ticks cannot resolve.
    """
    disturbed = [a_trial("pycurl", number, noise=Noise(**({"seconds": 2.0} | noise))) for number in (1, 2)]
    cautions = found(*rounds(), *disturbed, a_trial("pycurl", 3))
    assert list(cautions) == (["noisy-trials"] if fires else [])


@pytest.mark.parametrize(
    "changes", [{"verdict": "upstream-bound"}, {"noise": Noise(seconds=2.0, others_cpu_seconds=0.6)}]
)
def test_what_one_round_of_three_met_is_no_caution(changes):
    """Ratios are medians over the rounds: that round moves none of them."""
    assert found(*rounds(), a_trial("pycurl", 1, **changes), a_trial("pycurl", 2), a_trial("pycurl", 3)) == {}


def test_the_gravest_comes_first():
    """Failures before errors before all that merely blurs."""
    trials = [a_failed_trial("pycurl"), a_trial("urllib3", wall=0.1, errors={"reset": 1})]
    assert list(found(*trials)) == ["failed-trials", "errors", "few-rounds", "short-trials"]


def test_what_drives_a_server_is_not_scolded_for_a_busy_one():
    """The server is what it measures."""
    bound = {"verdict": "upstream-bound", "driver": "ab"}
    assert found(*rounds("ab", **bound)) == {}
    assert list(found(*rounds("pycurl", verdict="upstream-bound"), replaced={"ab": "pycurl"})) == ["replaced-strategy"]


def test_a_warm_trial_that_opened_connections_is_named():
    """Where its strategy keeps them: one that opens a connection a call is as it should be."""
    warm = {"workload": Workload(requests=1000, connections="warm")}
    trials = [*rounds("urllib3", connections_opened=20), *rounds("pycurl", connections_opened=80), *rounds("requests")]
    cautions = found(*trials, *rounds("of.elsewhere"), workloads=warm)
    assert list(cautions) == ["not-warm"]
    assert "pycurl" in cautions["not-warm"]
    assert "urllib3" not in cautions["not-warm"], "20 of 1,000 requests change the rate by little"
    assert found(*rounds("pycurl", connections_opened=80)) == {}
