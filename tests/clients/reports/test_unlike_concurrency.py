"""Arms with unlike numbers of requests in flight: the reports rank like with like, and show c."""

from __future__ import annotations

from clientlab.judging.cautions import cautions_of
from clientlab.judging.claim_verdicts import judged
from clientlab.judging.ranking import ranked
from clientlab.reports import as_html
from clientlab.reports.charts import bars, latency, sweeps
from clientlab.reports.charts.chart_data import chart_groups
from clientlab.reports.figure_tables import figure_table
from clientlab.reports.headline import answers
from clientlab.reports.rows import groups_of
from clientlab.results.plan import Arm, Claim
from clientlab.workload.workload import Workload
from clients.documents import a_run, a_trial
from clients.report_runs import a_measured_trial


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


def test_a_ratio_to_a_baseline_of_another_concurrency_says_so():
    """An experiment may ask for it, and its reader must see it."""
    found = columns(a_run(*MIXED, baseline="one"))
    assert found["x one (c=1)"][2:] == ["1", "2.00 (2.00 to 2.00)"]
    assert found["x one (c=1)"][0].startswith("0.0333")
    assert found["x one (c=1)"][0].endswith(" at c=32")


def test_the_answer_has_a_sentence_for_each_concurrency():
    """With c, and without a ratio between them."""
    (answer,) = answers(groups_of(a_run(*MIXED)))
    assert answer == (
        "With c=32, wide made 998 requests/s, 2.00 (2.00 to 2.00) times as fast as wider. "
        "With c=1, one made 33.3 requests/s, 2.00 (2.00 to 2.00) times as fast as two."
    )


def test_of_many_concurrencies_the_fastest_have_a_sentence():
    """The others are in the table."""
    many = [trial for c in range(1, 8) for trial in rounds(f"s{c}", 10 / c, c)]
    (answer,) = answers(groups_of(a_run(*many, *rounds("like", 10.0, 1))))
    assert [f"With c={c}," in answer for c in (7, 6, 5, 4, 3)] == [True, True, True, True, False]
    assert answer.endswith("The table has the arms of 3 more values of c.")
    (answer,) = answers(groups_of(a_run(*many[6:], *rounds("like", 3.0, 3))))
    assert answer.endswith("The table has the arms of 1 more value of c.")


def test_of_a_sweep_of_the_concurrency_the_answer_names_the_fastest():
    """No two of its arms are alike."""
    (answer,) = answers(groups_of(a_run(*(trial for c in range(1, 8) for trial in rounds(f"s{c}", 7 / c, c)))))
    assert answer == "With c=7, s7 made 998 requests/s. No two arms have the same c."


def test_charts_name_the_concurrency():
    """Bars, and every chart of the page; the fastest of each concurrency stands out, if there is another."""
    run = a_run(*MIXED, *rounds("three", 10.0, 4))
    (chart,) = bars.times(run, groups_of(run))
    assert [(row.name, row.first) for row in chart.rows] == [
        ("wide (c=32)", True), ("wider (c=32)", False), ("three (c=4)", False), ("one (c=1)", True),
        ("two (c=1)", False),
    ]  # fmt: skip
    assert (
        "Compare arms of equal c: where arms wait for the server, one with twice the c takes half the time."
        in chart.notes
    )
    measured = a_run(*rounds("wide", 1.0, 32, a_measured_trial), *rounds("one", 2.0, 1, a_measured_trial))
    (plot,) = latency.percentiles(chart_groups(measured))
    assert {line.name for line in plot.lines} == {"wide (c=32)", "one (c=1)"}
    assert "one (c=1)" in as_html.render(measured)


def test_curves_of_unlike_concurrency_name_it():
    """Curves along another axis than c."""
    arms, trials, workloads = [], [], {}
    for strategy, c in (("pycurl", 1), ("aiohttp@workers", 32)):
        for size in (10, 20, 40):
            name = f"{strategy}[requests={size}]"
            arms.append(Arm(name=name, strategy=strategy, upstream="aiohttp", route="direct", workload=f"n{size}",
                            axes={"requests": size}))  # fmt: skip
            workloads[f"n{size}"] = Workload(requests=size)
            trials += rounds(strategy, size / c, c, arm=name, workload=f"n{size}")
    (plot,) = sweeps.charts(a_run(*trials, arms=arms, workloads=workloads))
    assert [line.name.partition(":")[0] for line in plot.lines] == ["pycurl (c=1)", "aiohttp@workers (c=32)"]
    assert plot.table.headings == ["requests", "pycurl (c=1)", "aiohttp@workers (c=32)"]


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


def test_a_claim_shows_the_concurrency_of_its_arms_where_it_differs():
    """In the sentence of what was measured, and as a caution."""
    claims = [Claim(name=b, text="It is so", kind="less", a="wide", b=b) for b in ("wider", "one")]
    found = judged(a_run(*MIXED, claims=claims))
    assert [one.measured for one in found] == [
        "wider has 2.00 times the wall time of wide",
        "one (c=1) has 30.0 times the wall time of wide (c=32)",
    ]
    assert [one.cautions for one in found] == [[], ["unlike-concurrency"]]


def test_a_curve_whose_name_has_its_concurrency_names_it_once():
    """Of arms with two axes, one of which is the concurrency."""
    arms, trials, workloads = [], [], {}
    for c in (8, 32):
        for size in (10, 20, 40):
            name, axes = f"pycurl@multi[concurrency={c}, requests={size}]", {"concurrency": c, "requests": size}
            arms.append(Arm(name=name, strategy="pycurl@multi", upstream="aiohttp", route="direct", workload=f"n{size}",
                            axes=axes))  # fmt: skip
            workloads[f"n{size}"] = Workload(requests=size)
            trials += rounds("pycurl@multi", size / c, c, arm=name, workload=f"n{size}")
    (plot,) = sweeps.charts(a_run(*trials, arms=arms, workloads=workloads))
    names = [line.name.partition(":")[0] for line in plot.lines]
    assert names == ["pycurl@multi, concurrency=8", "pycurl@multi, concurrency=32"]
