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
from clientlab.reports.headline import version_answers
from clientlab.results.document import Run
from clientlab.results.plan import Arm, EnvironmentSpec
from clientlab.workload.values import Link
from clients.documents import a_run, a_trial
from clients.reports.views import answers


def rounds(strategy: str, *walls: float, **changes):
    """An arm's trials, round by round."""
    return [
        a_trial(strategy, number, wall, **changes)
        for number, wall in enumerate(walls, start=1)
    ]


def table_of(*parts, **changes):
    """The standings of the first group."""
    return next(
        iter(
            rank_arms(
                a_run(*(trial for part in parts for trial in part), **changes)
            ).values()
        )
    )


def test_arms_are_ranked_by_their_median_round():
    """One slow round does not make an arm slow."""
    table = table_of(
        rounds("slow", 3, 3, 3), rounds("fast", 1, 1, 99), rounds("middle", 2, 2, 2)
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
    table = table_of(failing, rounds("sound", 4, 4, 4), rounds("slow", 8, 8, 8))
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
    found = [
        (row.name, row.reference, row.fastest)
        for row in table_of(short, failing, worse)
    ]
    assert found == [
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
        rounds("one", 5, 5, 5),
        rounds("many", 1, 1, 1, **many),
        rounds("slower", 2, 2, 2, **many),
        rounds("short", 0.5, 0.5, 0.5, requests=9, **many),
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
    found = list(rank_arms(a_run(*trials, *elsewhere, baseline="b")).values())
    assert {row.name: row.to_baseline.value for row in found[0]} == pytest.approx(
        {"a": 0.5, "b": 1, "c": 1.5}
    )
    assert [row.to_baseline for row in found[1]] == [None]


def test_arms_behind_different_links_are_ranked_apart_and_paired_by_round():
    """A group for each link, and each link beside the first arm of the experiment,
    which has none here.
    """
    near = Link(0.001)
    far = Link(0.1, 2e7)
    trials = [
        a_trial("urllib3", number, level * factor, arm=f"urllib3 {link}", link=link)
        for number, level in enumerate((1, 10, 2, 5, 3, 7), start=1)
        for link, factor in ((None, 1.0), (near, 2.0), (far, 4.0))
    ]
    run = Run.model_validate_json(a_run(*trials).model_dump_json())
    assert [key.link for key in rank_arms(run)] == [None, "1 ms", "100 ms, 20 Mbit/s"]
    found = contrasts_by("link", run)
    assert [(one.arm.link, one.base.link) for one in found] == [
        (near, None),
        (far, None),
    ]
    assert [(one.time.value, *one.time.interval) for one in found] == [
        pytest.approx((2.0,) * 3),
        pytest.approx((4,) * 3),
    ]


def an_arm(strategy: str, environment: str | None) -> Arm:
    name = f"{strategy} in {environment}" if environment else strategy
    return Arm(
        name=name,
        label=name,
        strategy=strategy,
        upstream="aiohttp",
        route="direct",
        workload="workload",
        environment=environment,
    )


def test_arms_in_two_environments_are_paired_by_round():
    """Rounds differ by a factor of ten, but the ratio of each is 1.05.

    The round with an error does not count.
    """
    trials = [
        a_trial(
            "urllib3",
            number,
            level * factor,
            arm=f"urllib3 in {name}",
            environment=name,
            cpu_seconds=level / 2,
        )
        for number, level in enumerate((1, 10, 2, 5, 3, 7), start=1)
        for name, factor in (("old", 1.0), ("new", 1.05))
    ]
    trials.append(
        a_trial(
            "urllib3",
            7,
            1.0,
            arm="urllib3 in old",
            environment="old",
            errors={"reset": 1},
        )
    )
    trials.append(a_trial("urllib3", 7, 9.0, arm="urllib3 in new", environment="new"))
    arms = [
        an_arm("urllib3", "old"),
        an_arm("urllib3", "new"),
        an_arm("pycurl", "old"),
        an_arm("urllib3", None),
    ]
    run = a_run(
        *trials,
        arms=arms,
        environments={
            name: EnvironmentSpec(folder=f"/{name}") for name in ("old", "new")
        },
    )
    (found,) = contrasts_by("environment", run)
    assert found.arm.environment == "new"
    assert found.base.environment == "old"
    assert (found.time.rounds, found.time.value, *found.time.interval) == (
        6,
        *[pytest.approx(1.05)] * 3,
    )
    assert found.cpu.value == pytest.approx(1.0)
    assert found.time.confidence == found.cpu.confidence == pytest.approx(0.95)


DECODED = 1_252_204_000
PACKED = 340_788_000
"""Bytes of 1,000 bodies, decoded and as they were sent."""


def test_an_arm_that_received_other_bytes_for_the_same_requests_is_not_ranked():
    """It kept the bodies compressed, which the others decoded: it is fast because it
    did less.
    """
    packed = rounds("pycurl", 0.1, 0.1, 0.1, bytes_received=PACKED, cpu_seconds=0.01)
    decoded = rounds("urllib3", 1, 1, 1, bytes_received=DECODED)
    trials = [*packed, *decoded]
    table = table_of(packed, decoded)
    assert [(row.name, row.fell_short, row.ratio is None) for row in table] == [
        ("urllib3", False, False),
        ("pycurl", True, True),
    ]
    (answer,) = answers(a_run(*trials))
    assert answer.startswith("urllib3 made 1,000 requests/s.")
    assert (
        "pycurl is not ranked: its client received 340,788 bytes per request, and"
        " urllib3 1,252,204;" in answer
    )
    assert list(unlike_arms(a_run(*trials))) == ["pycurl"]


def test_environments_that_received_other_bytes_have_no_difference_in_seconds():
    sizes = {"old": DECODED, "new": PACKED}
    trials = [
        a_trial(
            "urllib3",
            number,
            1.0,
            arm=f"urllib3 in {name}",
            environment=name,
            bytes_received=size,
        )
        for number in range(1, 4)
        for name, size in sizes.items()
    ]
    run = a_run(*trials, arms=[an_arm("urllib3", name) for name in sizes])
    pair = run.experiment.arms[1], run.experiment.arms[0]
    assert list(latency_differences(run, [pair]).values()) == [{}]


def test_the_arms_that_most_others_agree_with_stay_ranked():
    trials = [
        trial
        for name, size in (
            ("http.client", PACKED),
            ("urllib3", DECODED),
            ("pycurl", PACKED),
        )
        for trial in rounds(name, 1, 1, 1, bytes_received=size)
    ]
    assert [row.name for row in table_of(trials) if not row.fell_short] == [
        "http.client",
        "pycurl",
    ]


@pytest.mark.parametrize(
    "others",
    [
        rounds(
            "b", 1, 1, 1, bytes_received=22_500
        ),  # answers of a server may vary a little
        rounds(
            "b", 1, 1, 1, bytes_received=5, errors={"status-5xx": 1}
        ),  # the bodies of errors are others
    ],
)
def test_arms_with_alike_or_unknown_sizes_are_ranked(others):
    assert not any(
        row.fell_short
        for row in table_of(rounds("a", 1, 1, 1, bytes_received=21_000), others)
    )


def test_two_environments_that_received_other_bytes_are_not_compared():
    trials = [
        a_trial(
            "urllib3",
            number,
            1.0,
            arm=f"urllib3 in {name}",
            environment=name,
            bytes_received=size,
        )
        for number in (1, 2, 3)
        for name, size in (("old", DECODED), ("new", PACKED))
    ]
    arms = [an_arm("urllib3", "old"), an_arm("urllib3", "new")]
    run = a_run(
        *trials,
        arms=arms,
        environments={
            name: EnvironmentSpec(folder=f"/{name}") for name in ("old", "new")
        },
    )
    (found,) = contrasts_by("environment", run)
    assert found.time is None
    assert found.cpu is None
    assert (
        "urllib3 in new: its client received 340,788 bytes"
        in version_answers(run)[0][0]
    )
