"""The report on a terminal, whole and in its short form: what stands where, on wide and
on narrow terminals.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from clientlab.judging import cautions
from clientlab.reports import as_markdown
from clientlab.reports.rows import figure_table, groups_of
from clientlab.results.document import Caution
from clientlab.results.trial import Disturbance, Histogram
from clientlab.statistics.histogram import make_histogram
from clients.documents import (
    a_bundled_run,
    a_run,
    a_trial,
    quantiles,
    rounds,
    with_changes,
)
from clients.reports.views import columns, shown


def cells(text: str) -> dict[str, list[str]]:
    """The rows of the tables of figures by strategy: their words, all pieces together,
    without the mark of cautions.
    """
    found: dict[str, list[str]] = {}
    figures, *_ = re.split("Errors by kind|Failed trials", text)
    for line in figures.replace("!", " ").splitlines():
        name, *rest = line.split() or [""]
        is_sentence = {"made", "was"} & set(rest)
        if name in {"urllib3", "pycurl"} and not is_sentence:
            found.setdefault(name, []).extend(rest)
    return found


RUN = a_run(
    *rounds("urllib3", connections_opened=1, concurrency=32),
    *rounds(
        "pycurl",
        2.0,
        2.2,
        1.8,
        concurrency=32,
        errors={"reset": 2},
        connections_opened=1234,
        cpu_seconds=0.25,
        peak_pss_bytes=64 << 20,
        latency_seconds=quantiles(0.0123, 0.5),
        bound="upstream-bound",
    ),
)


@pytest.mark.parametrize("width", [44, 150])
def test_every_figure_is_shown_whole_however_narrow_the_terminal(width):
    text = shown(RUN, width)
    assert {name: " ".join(words) for name, words in cells(text).items()} == {
        "urllib3": (
            "32 1.00 s 1,000 1 2.00 ms 1 9.00 ms 1 0 1 500 µs 1 32.0 MiB client client"
            " 90 %"
        ),
        "pycurl": (
            "32 2.00 s 499 2.00 (1.50 to 2.68) 12.3 ms 6.15 (6.15 to 6.15) 500 ms 55.6"
            " (55.6 to 55.6) 0.200 % 1,234 251 µs 0.501 (0.501 to 0.501) 64.0 MiB"
            " upstream client 90 %"
        ),
    }
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


@pytest.mark.parametrize(("width", "beside"), [(80, False), (150, True)])
def test_a_short_table_has_the_figures_side_by_side_in_80_columns(width, beside):
    """Although requests failed, and names are long.

    Only the bottleneck may follow in a second table.
    """
    name = "a-very-long-name@threads"
    long = [with_changes(trial, arm=name, strategy=name) for trial in RUN.trials[:3]]
    text = shown(a_run(*long, *RUN.trials[3:]), width, whole=False)
    lines = text.splitlines()
    head = next(line for line in lines if "x fastest" in line)
    for heading in ("req/s", "errors", "p50", "p99", "CPU/req"):
        assert heading in head
    assert ("bottleneck" in head) == beside
    assert "bottleneck" in text
    assert max(map(len, lines)) <= width
    kinds = text.partition("Errors by kind")[2].splitlines()
    resets = next(line for line in kinds if "reset" in line)
    assert resets.split()[-4:] == ["reset", "6", "0.200", "%"]


def test_the_p99_of_the_successful_requests_stands_beside_a_bound():
    """Of a thousand different times, 990 are at most the 990th."""
    times = np.arange(1, 1001) / 1e4
    histogram = Histogram(encoded=make_histogram(times).encode().decode())
    bounded = rounds(
        "pycurl",
        *[2.0] * 3,
        requests=1100,
        histogram=histogram,
        latency_seconds=quantiles(p99=0.5, at_least=["p99"]),
        errors={"timeout": 100},
    )
    found = columns(a_run(*bounded, *rounds("urllib3")))
    assert found["p99"] == ["9.00 ms", "≥ 500 ms"]
    assert found["p99 without errors"] == ["–", "99.0 ms"]
    assert "p99 without errors" not in columns(a_run(a_trial()))


def test_medians_of_the_rounds_are_shown_and_errors_as_a_share():
    first, second, third = rounds("pycurl", 1.0, 1.0, 50.0)
    first = with_changes(first, errors={"reset": 1, "connect": 2}, requests=1003)
    second = with_changes(second, errors={"reset": 4}, requests=1004)
    found = columns(a_run(first, second, third))
    assert found["wall"] == ["1.00 s"]
    assert found["req/s"] == ["1,000"]
    assert found["errors"] == ["0.233 %"]


def test_a_baseline_has_a_column_of_ratios_to_it():
    trials = []
    for route in ("direct", "proxy"):
        trials += rounds("urllib3", route=route, arm=f"urllib3 ({route})")
        trials += rounds("pycurl", *[4.0] * 3, route=route, arm=f"pycurl ({route})")
    run = a_run(*trials, baseline="pycurl (direct)")
    direct, proxied = map(figure_table, groups_of(run))
    place = direct.headings.index("x pycurl")
    first, second = direct.rows
    assert first[place].startswith("0.250 ")
    assert second[place] == "1"
    assert "x pycurl" not in proxied.headings


def test_names_are_shown_as_they_are():
    word = "[bold]x[/]"
    trial = a_trial(f"s{word}", workload=word, upstream=word)
    caution = Caution(kind="x", text=f"see {word}", advice=f"try {word}")
    run = a_run(trial, question=f"Is {word} fast?").updated(cautions=[caution])
    text = shown(run)
    assert f"Is {word} fast?" in text
    assert f"{word} · {word} upstream" in text
    assert f"! see {word} - try {word}" in text
    assert f"\ns{word} " in text


def test_an_unknown_figure_is_shown_as_a_dash_and_never_as_0():
    unknown = dict.fromkeys(["requests_per_second", "latency_seconds", "bound"])
    unknown |= dict.fromkeys(["peak_pss_bytes", "idle_pss_bytes"])
    run = a_run(a_trial(**unknown))
    found = columns(run)
    for head in ("req/s", "p50", "p99", "bottleneck"):
        assert found[head] == ["–"]
    assert found["wall"] == ["1.00 s"]
    assert "memory" not in found
    assert shown(run).splitlines()[1] == "urllib3 was the fastest."
    one_known = a_trial(number=2, **unknown | {"requests_per_second": 5})
    assert columns(a_run(*run.trials, one_known))["req/s"] == ["5.00"]


def test_only_cautions_that_could_reorder_the_arms_mark_them():
    """An arm whose rounds differ widely or were disturbed is not marked: the intervals
    of its ratios hold that.
    """
    noisy = Disturbance(seconds=2.0, others_cpu_seconds=0.9)
    disturbed = rounds("urllib3", 1.0, 1.4, 1.9, disturbance=noisy)
    full = rounds("pycurl", bound="machine", busy={"machine": 0.95})
    run = a_run(*disturbed, *full)
    run = run.updated(cautions=cautions.cautions_of(run))
    assert {caution.kind for caution in run.cautions} == {"noisy-trials", "machine"}
    (group,) = groups_of(run)
    doubtful = {row.name: row.doubtful for row in group.rows}
    assert doubtful == {"urllib3": False, "pycurl": True}


def test_the_line_of_cautions_leaves_out_those_that_change_no_decision():
    few = Caution(
        kind="few-requests", text="p99 rests on 3 requests", advice="send more"
    )
    machine = Caution(
        kind="machine",
        text="no core was idle",
        advice="use more cores",
        arms=["urllib3"],
    )
    run = a_run(a_trial())
    minor = run.updated(cautions=[few])
    both = run.updated(cautions=[few, machine])
    assert "Cautions: all cores were full.\n" in shown(both, whole=False)
    for caution in (few, machine):
        assert caution.text in shown(both)
    for text in (shown(minor, whole=False), as_markdown.render(minor, whole=False)):
        assert "Cautions:" not in text


def test_the_short_form_of_a_run_with_claims_begins_with_their_verdicts():
    run = a_bundled_run("keepalive")
    text = as_markdown.render(run, whole=False)
    claims = text.index("Of 4 claims: ")
    controls = text.index("Of 3 controls: ")
    assert claims < controls < text.index("| arm |")
    for claim in run.claims:
        assert claim.text in text
    assert len(text.split()) < len(as_markdown.render(run).split()) / 2
