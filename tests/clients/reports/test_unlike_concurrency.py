"""Arms with unlike numbers of requests in flight: the reports rank like with like, and show c."""

from __future__ import annotations

from clientlab.judging.cautions import cautions_of
from clientlab.judging.ranking import ranked
from clientlab.reports.figure_tables import figure_table
from clientlab.reports.rows import groups_of
from clientlab.results.plan import Arm
from clients.documents import a_run, a_trial


def rounds(strategy: str, wall: float, c: int, make=a_trial, **changes) -> list:
    """Three rounds that wait for the server's delay."""
    return [
        make(strategy, number, wall * (1 + number / 1000), concurrency=c, verdict="latency-bound", **changes)
        for number in (1, 2, 3)
    ]


MIXED = [*rounds("wide", 1.0, 32), *rounds("wider", 2.0, 32), *rounds("one", 30.0, 1), *rounds("two", 60.0, 1)]


def columns(run) -> dict[str, list[str]]:
    """Heading → cells of the only table of a run."""
    (group,) = groups_of(run)
    table = figure_table(group)
    heads, rows = table.headings, table.rows
    return dict(zip(heads, map(list, zip(*rows, strict=True)), strict=True))


def test_each_concurrency_has_its_own_fastest():
    """No arm is compared with one that has another number of requests in flight."""
    ((_, rows),) = ranked(a_run(*MIXED)).items()
    assert [(row.name, row.fastest, round(row.ratio.value, 3)) for row in rows] == [
        ("wide", True, 1.0), ("wider", False, 2.0), ("one", True, 1.0), ("two", False, 2.0),
    ]  # fmt: skip


def test_the_table_keeps_arms_of_equal_concurrency_together():
    """And says what the ratio is to. An arm that has no equal has no ratio."""
    found = columns(a_run(*MIXED, *rounds("three", 10.0, 4)))
    assert found["strategy"] == ["wide", "wider", "three", "one", "two"]
    assert found["c"] == ["32", "32", "4", "1", "1"]
    assert found["x fastest of c (95 %)"] == ["1", "2.00 (2.00 to 2.00)", "–", "1", "2.00 (2.00 to 2.00)"]
    assert "x fastest (95 %)" in columns(a_run(*rounds("wide", 1.0, 32), *rounds("wider", 2.0, 32)))


def test_a_caution_names_the_arms_and_what_their_ratio_means():
    """Where they wait for the server."""
    (found,) = [one for one in cautions_of(a_run(*MIXED)) if one.kind == "unlike-concurrency"]
    assert found.text == "arms have unlike numbers of requests in flight: c=32 for wide, wider; c=1 for one, two"
    assert found.advice == (
        "compare arms of equal c: where they wait for the upstream's delay, the ratio between unlike ones is mostly "
        "the ratio of c"
    )
    assert found.arms == ["one", "two", "wide", "wider"]


def test_without_unlike_concurrency_there_is_no_caution():
    """Nor where an axis of the experiment varies it on purpose, by any name. Other groups are not compared."""
    equal = a_run(*rounds("wide", 1.0, 32), *rounds("wider", 2.0, 32), *rounds("one", 3.0, 1, route="proxy"))
    swept = a_run(
        *rounds("a", 1.0, 32), *rounds("b", 2.0, 1),
        arms=[Arm(name=name, strategy=name, upstream="aiohttp", route="direct", workload="workload",
                  axes={axis: c}) for name, axis, c in (("a", "concurrency", 32), ("b", "semaphore", 1))],
    )  # fmt: skip
    for run in (equal, swept):
        assert "unlike-concurrency" not in [one.kind for one in cautions_of(run)]
