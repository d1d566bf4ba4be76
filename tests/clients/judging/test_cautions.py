"""Cautions: when each applies, and to which arms."""

from __future__ import annotations

import pytest

from clientlab.judging.cautions import MINOR, REORDERING, RULES, cautions_of
from clientlab.reports.headline import environment_lines
from clientlab.results.document import Environment
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.results.trial import Disturbance, Trial, Window
from clientlab.workload.workload import make_workload
from clients.documents import a_failed_trial, a_run, a_trial, rounds


def texts_of(*trials, **changes) -> dict[str, str]:
    """The cautions of a run, by kind."""
    found = cautions_of(a_run(*trials, **changes))
    return {caution.kind: f"{caution.text} - {caution.advice}" for caution in found}


def test_every_rule_says_what_its_cautions_mean():
    assert len(RULES) == len({rule.kind for rule in RULES}) <= 20
    for rule in RULES:
        assert rule.meaning
        assert rule.phrase
        assert rule.advice
    assert not REORDERING & MINOR


@pytest.mark.parametrize(
    ("doubtful", "kind"),
    [
        ([a_failed_trial("pycurl", "no such library")], "failed-trials"),
        (rounds("pycurl", errors={"reset": 2, "connect": 1}), "errors"),
        (rounds("pycurl", bound="proxy-bound"), "server-bound"),
        (rounds("pycurl", bound="upstream-threads"), "server-bound"),
        (rounds("pycurl", bound="machine"), "machine"),
        (rounds("pycurl", bound="unaccounted"), "unaccounted"),
        (rounds("pycurl", bound="start-up"), "start-up"),
        (rounds("pycurl", waits_for_connection=True), "waits-for-connection"),
        (rounds("pycurl", 0.19, 0.19, 0.19), "short-trials"),
        (rounds("pycurl", requests=300), "few-requests"),
    ],
)
def test_a_caution_names_the_arms_that_it_doubts(doubtful, kind):
    (caution,) = cautions_of(a_run(*rounds(), *doubtful))
    assert caution.kind == kind
    assert caution.arms == ["pycurl"]


@pytest.mark.parametrize(
    "sound",
    [
        rounds("pycurl", bound="latency-bound"),
        # the server is what it measures
        rounds("ab", bound="upstream-bound", driver="ab"),
        # moves no median
        [a_trial("pycurl", 1, bound="upstream-bound"), *rounds("pycurl")[1:]],
    ],
)
def test_arms_without_a_doubt_have_no_caution(sound):
    assert cautions_of(a_run(*rounds(), *sound)) == []


def test_resets_that_a_library_hides_are_a_caution_even_without_an_error_of_its_own():
    """Of 100 resets, 2 or none are counted, because libcurl sends a request again."""

    def text_of(*trials):
        return texts_of(*trials)["errors"]

    failing = rounds("http.client", errors={"reset": 100})
    text = text_of(*failing, *rounds("pycurl"), *rounds("urllib3"))
    assert "pycurl: its library sends a request again" in text
    assert "urllib3" not in text
    assert "hides" in text_of(*rounds("pycurl", errors={"reset": 2}))
    assert "hides" not in text_of(*rounds("pycurl", errors={"status-5xx": 2}))


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        (
            {"left_out": {"mine": "no such file"}},
            "left-out",
            "mine was not measured: no such file",
        ),
        (
            {"replaced": {"ab": "urllib3"}},
            "left-out",
            "urllib3 was measured in place of ab",
        ),
        ({"shortened": ["rounds: 3"]}, "changed", "quick form: rounds: 3"),
        (
            {"changed": ["requests: 4000 → 50", "delay: 5ms → 1s"]},
            "changed",
            "requests: 4000 → 50; delay: 5ms → 1s",
        ),
        ({"rounds": 2}, "few-rounds", "an interval needs 3 rounds, and there are 2"),
    ],
)
def test_a_caution_about_the_whole_run_names_no_arm(changes, kind, text):
    bound = "upstream-bound" if "replaced" in changes else None
    (caution,) = cautions_of(a_run(*rounds(bound=bound), **changes))
    assert caution.kind == kind
    assert caution.arms == []
    assert text in caution.text


def test_a_budget_that_ends_before_an_interval_is_possible_is_doubted():
    """Three rounds were planned at least; the first took longer than the budget."""
    run = a_run(*rounds()[:2], rounds=3, budget=1.0).updated(rounds_ended="budget")
    (caution,) = cautions_of(run)
    assert caution.kind == "few-rounds"
    assert caution.text == "an interval needs 3 rounds, and there are 2"


@pytest.mark.parametrize(("held", "arms"), [(0.0510, ["pycurl"]), (0.0504, [])])
def test_a_difference_that_lies_in_the_upstream(held, arms):
    """A cycle of 50 requests in flight takes 51.5 instead of 50.5 ms, after a delay of
    50 ms.

    `held`: seconds that the upstream held a request of the slower arm, and 0.0502 of
    the other.
    """

    def trials(strategy: str, cycle: float, seconds: float) -> list[Trial]:
        use = ServerUse(cpu_seconds=0.1, requests=1000, held_seconds=1000 * seconds)
        steady = Window(
            slots=50,
            wave_seconds=cycle,
            cycles=1000,
            cycle_seconds=1000 * cycle,
            ended=50 / cycle,
            seconds=1.0,
            early=500,
            late=500,
        )
        usual = {
            "windows": [steady],
            "delay_seconds": 0.05,
            "concurrency": 50,
            "tail_seconds": 0.0,
            "servers": ServerCounters(upstream=use),
        }
        return [
            a_trial(
                strategy,
                number,
                requests_per_second=50 / cycle * (1 + number / 1e4),
                **usual,
            )
            for number in (1, 2, 3, 4)
        ]

    run = a_run(*trials("urllib3", 0.0505, 0.0502), *trials("pycurl", 0.0515, held))
    assert arms_of("server-bound", run) == arms


def arms_of(kind: str, run) -> list[str]:
    """The arms that cautions of this kind doubt."""
    arms = []
    for caution in cautions_of(run):
        if caution.kind == kind:
            arms += caution.arms
    return arms


def test_a_server_whose_first_answers_take_long_drifts():
    cold = rounds("urllib3", 20.0, 1.0, 1.0)
    text = texts_of(*cold, *rounds("pycurl", 20.0, 1.0, 1.0))["drift"]
    assert (
        "time per request of all arms becomes 20.0 times shorter after the first round"
        in text
    )
    assert "drift" not in texts_of(*cold[1:], *rounds("pycurl"))


def test_an_arm_whose_slices_become_slower_drifts():
    def trial(name: str, number: int, growth: float) -> Trial:
        windows = []
        for place in range(4):
            seconds = growth**place * (1 + number / 100)
            windows.append(
                Window(
                    slots=1,
                    cycles=100,
                    cycle_seconds=seconds,
                    ended=100 / seconds,
                    seconds=1.0,
                )
            )
        return a_trial(name, number, windows=windows)

    trials = []
    for name, growth in (("urllib3", 1.0), ("pycurl", 1.2), ("httpx", 1.0)):
        trials += [trial(name, number, growth) for number in (1, 2, 3)]
    text = texts_of(*trials)["drift"]
    assert "pycurl becomes 1.73 times longer within each round" in text


def test_a_trial_that_took_far_longer_than_its_duration():
    late = rounds("pycurl", *[19.3] * 3, tail_seconds=15.3, bound="client-connections")
    in_time = rounds("urllib3", 4.1, 4.1, 4.1)
    workloads = {"workload": make_workload(duration=4.0)}
    cautions = texts_of(*in_time, *late, workloads=workloads)
    assert "pycurl: took 19.3 s instead of 4 s" in cautions["overlong"]


@pytest.mark.parametrize(
    ("noise", "fires"),
    [
        ({"others_cpu_seconds": 0.6}, True),
        ({"others_cpu_seconds": 0.02}, False),
        ({"steal_seconds": 0.6}, True),
        ({"run_delay_seconds": 5.0, "cpu_pressure_seconds": 1.0}, False),
        ({"others_cpu_seconds": 0.6, "cpu_pressure_seconds": 0.02}, False),
        ({"others_cpu_seconds": 0.09, "seconds": 0.3}, False),
    ],
)
def test_trials_during_which_others_took_cpu_time(noise, fires):
    """Waiting alone does not count, because the run's own servers may take
    the cores.
    """
    disturbance = Disturbance(**{"seconds": 2.0} | noise)
    disturbed = rounds("pycurl", disturbance=disturbance)
    quiet = rounds("pycurl")
    kinds = list(texts_of(*rounds(), *disturbed[:2], quiet[2]))
    assert kinds == (["noisy-trials"] if fires else [])
    assert texts_of(*rounds(), disturbed[0], *quiet[1:]) == {}


def test_the_most_serious_caution_comes_first():
    trials = [
        a_failed_trial("pycurl"),
        a_trial("urllib3", wall=0.1, errors={"reset": 1}),
    ]
    assert list(texts_of(*trials)) == [
        "failed-trials",
        "errors",
        "few-rounds",
        "short-trials",
    ]


def test_a_warm_trial_that_opened_connections():
    """If its strategy keeps them. 20 of 1,000 requests change the rate by little."""
    warm = make_workload(requests=1000, connections="warm")
    reconnecting = rounds("pycurl", connections_opened=80)
    run = a_run(
        *rounds("urllib3", connections_opened=20),
        *reconnecting,
        *rounds("requests"),
        *rounds("of.elsewhere"),
        workloads={"workload": warm},
    )
    (caution,) = cautions_of(run)
    assert caution.kind == "start-up"
    assert caution.arms == ["pycurl"]
    assert texts_of(*reconnecting) == {}


@pytest.mark.parametrize(
    ("gil", "shown", "arms"),
    [((False, False), "GIL off", []), ((False, True), "GIL on in arm 1", ["arm 1"])],
)
def test_a_gil_in_a_python_for_free_threading(gil, shown, arms):
    """A library may have switched it on, in some arms only."""
    trials = [
        a_trial(arm=f"arm {place}", environment="new", gil=on)
        for place, on in enumerate(gil)
    ]
    held = Environment(
        folder="/new",
        python="CPython 3.14.2",
        python_build="free-threading, GIL off, GCC 14, -O3",
        openssl=None,
        packages={},
        compiled={},
    )
    run = a_run(*trials)
    where = run.surroundings.updated(environments={"new": held})
    run = run.updated(surroundings=where)
    assert environment_lines(run) == [f"new: CPython 3.14.2, free-threading, {shown}"]
    assert arms_of("gil-on", run) == arms
