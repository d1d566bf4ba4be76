"""The ranking of a run, and the ratios of arms that differ in their environment or link
only.
"""

from __future__ import annotations

import pytest

from clientlab.judging.ranking import (
    contrasts_by,
    latency_differences,
    rank_arms,
    unlike_arms,
)
from clientlab.reports.answers import version_answers
from clientlab.results.document import Run
from clientlab.results.trial import Trial
from clientlab.workload.values import Link
from clients.documents import a_run, an_arm, rounds, with_changes
from clients.reports.views import answers

LEVELS = (1, 10, 2, 5, 3, 7)
"""Seconds of rounds that differ widely."""


def table_of(*trials: Trial):
    """The standings of the first group."""
    groups = rank_arms(a_run(*trials))
    return next(iter(groups.values()))


def in_environment(name: str, *walls: float, **changes) -> list[Trial]:
    """The trials of urllib3 there."""
    return rounds(
        "urllib3", *walls, arm=f"urllib3 in {name}", environment=name, **changes
    )


def test_arms_are_ranked_by_their_median_round():
    """One slow round does not make an arm slow."""
    table = table_of(
        *rounds("slow", 3, 3, 3),
        *rounds("fast", 1, 1, 99),
        *rounds("middle", 2, 2, 2),
    )
    assert [(row.name, row.fastest) for row in table] == [
        ("fast", True),
        ("middle", False),
        ("slow", False),
    ]
    assert [row.level for row in table] == pytest.approx([0.001, 0.002, 0.003])


def test_an_arm_with_errors_is_never_the_reference():
    """It stays where its speed puts it, and its ratio is below 1."""
    failing = rounds("fails fast", 1, 1, 1, errors={"reset": 2})
    table = table_of(*failing, *rounds("sound", 4, 4, 4), *rounds("slow", 8, 8, 8))
    assert [(row.name, row.fastest) for row in table] == [
        ("fails fast", False),
        ("sound", True),
        ("slow", False),
    ]
    assert [row.ratio.value for row in table] == pytest.approx([0.25, 1, 2], rel=0.01)


def test_an_arm_that_never_had_its_load_is_never_the_reference():
    """Even if it is the only one without errors."""
    failing = rounds("failing", 4, 4, 4, concurrency=16, errors={"reset": 2})
    worse = rounds("worse", 8, 8, 8, concurrency=16, errors={"reset": 2})
    short = rounds("short", 1, 1, 1, concurrency=16, requests=9)
    table = table_of(*short, *failing, *worse)
    assert [(row.name, row.reference, row.fastest) for row in table] == [
        ("failing", "failing", True),
        ("worse", "failing", False),
        ("short", "failing", False),
    ]


def test_arms_of_unlike_concurrency_are_ranked_apart():
    """The class with the fastest arm first.

    An arm that never reached its concurrency is last, without a ratio.
    """
    many = {"concurrency": 16}
    table = table_of(
        *rounds("one", 5, 5, 5),
        *rounds("many", 1, 1, 1, **many),
        *rounds("slower", 2, 2, 2, **many),
        *rounds("short", 0.5, 0.5, 0.5, requests=9, **many),
    )
    assert [(row.name, row.reference) for row in table] == [
        ("many", "many"),
        ("slower", "many"),
        ("short", "many"),
        ("one", "one"),
    ]
    assert table[2].fell_short
    assert table[2].ratio is None


def test_ratios_are_to_the_baseline_as_well_in_its_own_group():
    """Whatever the fastest is, and whatever their concurrency; other groups
    have none.
    """
    trials = [*rounds("a", 1, 2), *rounds("b", 2, 4), *rounds("c", 3, 6, concurrency=2)]
    elsewhere = rounds("b", 3, 3, route="proxy", arm="b behind it")
    run = a_run(*trials, *elsewhere, baseline="b")
    first, second = rank_arms(run).values()
    ratios = {row.name: row.to_baseline.value for row in first}
    assert ratios == pytest.approx({"a": 0.5, "b": 1, "c": 1.5})
    assert [row.to_baseline for row in second] == [None]


def test_arms_behind_different_links_are_ranked_apart_and_paired_by_round():
    """A group for each link, and each link beside the first arm of the experiment,
    which has none here.
    """
    near = Link(0.001)
    far = Link(0.1, 2e7)
    trials = []
    for link, factor in ((None, 1.0), (near, 2.0), (far, 4.0)):
        walls = [level * factor for level in LEVELS]
        trials += rounds("urllib3", *walls, arm=f"urllib3 {link}", link=link)
    run = Run.model_validate_json(a_run(*trials).model_dump_json())
    assert [key.link for key in rank_arms(run)] == [None, "1 ms", "100 ms, 20 Mbit/s"]
    contrasts = contrasts_by("link", run)
    for contrast, link, ratio in zip(contrasts, (near, far), (2.0, 4.0), strict=True):
        assert contrast.arm.link == link
        assert contrast.base.link is None
        assert contrast.time.value == pytest.approx(ratio)
        assert contrast.time.interval == pytest.approx((ratio, ratio))


def test_arms_in_two_environments_are_paired_by_round():
    """Rounds differ by a factor of ten, but the ratio of each is 1.05.

    The round with an error does not count.
    """
    slower = [1.05 * level for level in LEVELS]
    trials = [*in_environment("old", *LEVELS, 1.0), *in_environment("new", *slower, 9)]
    trials[6] = with_changes(trials[6], errors={"reset": 1})
    trials = [
        with_changes(trial, cpu_seconds=level / 2)
        for trial, level in zip(trials, (*LEVELS, 1) * 2, strict=True)
    ]
    arms = [
        an_arm(environment="old"),
        an_arm(environment="new"),
        an_arm("pycurl", environment="old"),
        an_arm(),
    ]
    (found,) = contrasts_by("environment", a_run(*trials, arms=arms))
    assert found.arm.environment == "new"
    assert found.base.environment == "old"
    assert found.time.rounds == 6
    assert found.time.value == pytest.approx(1.05)
    assert found.time.interval == pytest.approx((1.05, 1.05))
    assert found.time.confidence == pytest.approx(0.95)
    assert found.cpu.value == pytest.approx(1.0)
    assert found.cpu.confidence == pytest.approx(0.95)


DECODED = 1_252_204_000
PACKED = 340_788_000
"""Bytes of 1,000 bodies, decoded and as they were sent."""


def test_an_arm_that_received_other_bytes_for_the_same_requests_is_not_ranked():
    """It kept the bodies compressed, which the others decoded: it is fast because it
    did less.
    """
    packed = rounds("pycurl", 0.1, 0.1, 0.1, bytes_received=PACKED, cpu_seconds=0.01)
    decoded = rounds("urllib3", 1, 1, 1, bytes_received=DECODED)
    run = a_run(*packed, *decoded)
    ranked, unranked = table_of(*packed, *decoded)
    assert ranked.name == "urllib3"
    assert ranked.ratio.value == 1
    assert ranked.fell_short is False
    assert unranked.name == "pycurl"
    assert unranked.ratio is None
    assert unranked.fell_short
    (answer,) = answers(run)
    assert answer.startswith("urllib3 made 1,000 requests/s.")
    assert (
        "pycurl is not ranked: its client received 340,788 bytes per request, and"
        " urllib3 1,252,204;" in answer
    )
    assert list(unlike_arms(run)) == ["pycurl"]


def test_the_arms_that_most_others_agree_with_stay_ranked():
    table = table_of(
        *rounds("http.client", bytes_received=PACKED),
        *rounds("urllib3", bytes_received=DECODED),
        *rounds("pycurl", bytes_received=PACKED),
    )
    ranked = [row.name for row in table if not row.fell_short]
    assert ranked == ["http.client", "pycurl"]


@pytest.mark.parametrize(
    "changes",
    [
        {"bytes_received": 22_500},  # answers of a server may vary a little
        # the bodies of errors are others
        {"bytes_received": 5, "errors": {"status-5xx": 1}},
    ],
)
def test_arms_with_alike_or_unknown_sizes_are_ranked(changes):
    table = table_of(*rounds("a", bytes_received=21_000), *rounds("b", **changes))
    for row in table:
        assert not row.fell_short


def test_environments_that_received_other_bytes_are_not_compared():
    """Neither by ratios nor in seconds."""
    decoded = in_environment("old", bytes_received=DECODED)
    packed = in_environment("new", bytes_received=PACKED)
    run = a_run(*decoded, *packed)
    (found,) = contrasts_by("environment", run)
    assert found.time is None
    assert found.cpu is None
    old, new = run.experiment.arms
    assert list(latency_differences(run, [(new, old)]).values()) == [{}]
    ((answer, *_),) = version_answers(run)
    assert "urllib3 in new: its client received 340,788 bytes" in answer
