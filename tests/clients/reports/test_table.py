"""The terminal's report: what stands where, on wide and on narrow terminals."""

from __future__ import annotations

import re

import pytest
from rich.console import Console

from clientlab.reports import as_terminal
from clientlab.reports.figure_tables import figure_table
from clientlab.reports.rows import groups_of
from clientlab.results.document import Caution
from clientlab.results.plan import Arm
from clients.documents import a_run, a_trial, quantiles


def shown(run, width: int = 150, *, whole: bool = True) -> str:
    """The report as text, on a console of that width."""
    console = Console(record=True, width=width, file=open("/dev/null", "w"), color_system=None)  # noqa: SIM115, PTH123
    with console.file:
        console.print(as_terminal.render(run, whole=whole), highlight=False)
        return console.export_text()


def cells(text: str) -> dict[str, list[str]]:
    """The rows of the tables of figures by strategy: their words, all pieces together, without the mark of cautions."""
    found: dict[str, list[str]] = {}
    for line in re.split("Errors by kind|Failed trials", text)[0].splitlines():
        name, *rest = [word for word in line.split() if word != "!"] or [""]
        if name in {"urllib3", "pycurl"} and not {"made", "was"} & set(rest):
            found.setdefault(name, []).extend(rest)
    return found


RUN = a_run(
    *(a_trial("urllib3", number, connections_opened=1, concurrency=32) for number in (1, 2, 3)),
    *(
        a_trial(
            "pycurl", number, wall, concurrency=32, errors={"reset": 2}, connections_opened=1234, cpu_seconds=0.25,
            peak_pss_bytes=64 << 20, latency_seconds=quantiles(0.0123, 0.5), verdict="upstream-bound",
        )
        for number, wall in enumerate((2.0, 2.2, 1.8), start=1)
    ),
)  # fmt: skip


@pytest.mark.parametrize("width", [44, 150])
def test_every_figure_is_shown_whole_however_narrow_the_terminal(width):
    """The same cells on any width: where there is no room for all columns, they stand below each other."""
    text = shown(RUN, width)
    assert {name: " ".join(words) for name, words in cells(text).items()} == {
        "urllib3": "32 1.00 s 1,000 1 2.00 ms 9.00 ms 1 0 1 500 µs 1 32.0 MiB client",
        "pycurl": "32 2.00 s 499 2.00 (1.50 to 2.68) 12.3 ms 500 ms 55.6 (55.6 to 55.6) 6 reset 1,234 251 µs "
        "0.501 (0.501 to 0.501) 64.0 MiB upstream",
    }
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


@pytest.mark.parametrize("width", [80, 150])
def test_a_short_table_keeps_the_bottleneck_and_names_the_columns_that_it_leaves_out(width):
    """Each of its columns is in the table or in the line below it."""
    text = shown(RUN, width, whole=False)
    [table] = (figure_table(group) for group in groups_of(RUN))
    head = next(line for line in text.splitlines() if "x fastest" in line)
    note = next((line for line in text.splitlines() if line.startswith("Left out")), "")
    headings = [table.headings[place] for place in table.brief]
    assert [heading for heading in headings if heading not in head and heading not in note] == []
    assert "bottleneck" in head
    assert ("p50" in note) == (width == 80)


def test_medians_of_the_rounds_are_shown_and_errors_are_summed():
    """One slow round changes no figure."""
    trials = [a_trial("pycurl", number, wall) for number, wall in enumerate((1.0, 1.0, 50.0), start=1)]
    trials[0] = trials[0].model_copy(update={"errors": {"reset": 1, "connect": 2}, "requests": 1003})
    trials[1] = trials[1].model_copy(update={"errors": {"reset": 4}, "requests": 1004})
    words = " ".join(cells(shown(a_run(*trials)))["pycurl"])
    assert words.startswith("1 1.00 s 1,000 1 ")
    assert " 5 reset, 2 connect " in words


def test_a_baseline_has_a_column_of_ratios_to_it():
    """Only where the experiment names one, and on its own way."""
    trials = [
        a_trial(name, number, wall, route=route)
        for route in ("direct", "proxy")
        for name, wall in (("urllib3", 1.0), ("pycurl", 4.0))
        for number in (1, 2, 3)
    ]
    arms = [
        Arm(name=f"{name} ({route})", strategy=name, upstream="aiohttp", route=route, workload="workload")
        for route in ("direct", "proxy")
        for name in ("urllib3", "pycurl")
    ]
    trials = [trial.model_copy(update={"arm": f"{trial.strategy} ({trial.route})"}) for trial in trials]
    text = shown(a_run(*trials, arms=arms, baseline="pycurl (direct)"))
    direct, proxied = text.split("workload · aiohttp upstream · proxy · c=1")
    proxied = proxied.partition("Figures are medians")[0]
    assert "x pycurl" in direct
    assert "0.25" in direct
    assert "x pycurl" not in proxied


@pytest.mark.parametrize("word", ["[bold]x[/bold]", "[/]"])
def test_names_are_shown_as_they_are(word):
    """Whatever stands in them, nothing is taken for markup."""
    trial = a_trial(workload=word, upstream=word)
    run = a_run(trial, question=f"Is {word} fast?")
    run = run.model_copy(update={"cautions": [Caution(kind="x", text=f"see {word}", advice=f"try {word}")]})
    text = shown(run)
    assert f"Is {word} fast?" in text
    assert f"{word} · {word} upstream · direct" in text
    assert f"! see {word} - try {word}" in text
    odd = shown(a_run(a_trial(f"s{word}")))
    assert f" s{word} " in odd


def test_an_unknown_figure_is_shown_as_a_dash_and_never_as_0():
    """A median is of the trials that have the figure."""
    names = (
        "requests_per_second",
        "cpu_seconds",
        "peak_rss_bytes",
        "peak_pss_bytes",
        "connections_opened",
        "latency_seconds",
        "verdict",
    )
    unknown = dict.fromkeys(names)
    text = shown(a_run(a_trial(**unknown)))
    assert " ".join(cells(text)["urllib3"]) == "1 1.00 s – 1 – – 0 – – –"
    assert text.splitlines()[1] == "urllib3 was the fastest."
    one_known = [a_trial(**unknown), a_trial(number=2, **unknown | {"connections_opened": 7, "requests_per_second": 5})]
    assert " ".join(cells(shown(a_run(*one_known)))["urllib3"]) == "1 1.00 s 5.00 1 – – 0 7 – –"
