"""The terminal's report: what stands where, on wide and on narrow terminals."""

from __future__ import annotations

import re

import pytest
from rich.console import Console

from clientlab.reports import as_terminal
from clientlab.reports.rows import groups_of
from clientlab.results.document import Caution
from clientlab.results.plan import Arm
from clientlab.results.trial import Noise
from clientlab.workload.workload import Workload
from clients.documents import a_failed_trial, a_run, a_trial, quantiles


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


@pytest.mark.parametrize("width", [44, 80, 100, 150, 300])
def test_every_figure_is_shown_whole_however_narrow_the_terminal(width):
    """The same cells on any width: where there is no room for all columns, they stand below each other."""
    text = shown(RUN, width)
    assert {name: " ".join(words) for name, words in cells(text).items()} == {
        "urllib3": "32 1.00 s 1,000 1 2.00 ms 9.00 ms 1 0 1 500 µs 1 32.0 MiB client",
        "pycurl": "32 2.00 s 499 2.00 (1.56 to 2.56) 12.3 ms 500 ms 55.6 (55.6 to 55.6) 6 reset 1,234 251 µs "
        "0.501 (0.501 to 0.501) 64.0 MiB upstream",
    }
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text


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


def test_overhead_is_a_column_only_where_a_delay_was_asked_for():
    """ExternalTarget there is none to speak of."""
    delayed = a_run(a_trial(overhead_seconds=quantiles(0.00042)))
    assert "overhead" not in shown(RUN)
    assert "overhead" in shown(delayed)
    assert "420 µs" in shown(delayed)


def test_memory_above_idle_is_a_column_only_where_bodies_are_large():
    """Received or sent; the median of the rounds."""
    large = {"idle_pss_bytes": 30 << 20, "peak_pss_bytes": 286 << 20, "bytes_received": 1000 << 20}
    received = a_run(*(a_trial(number=number, **large) for number in (1, 2, 3)))
    assert "above idle" in shown(received)
    assert "286 MiB 256 MiB" in " ".join(cells(shown(received))["urllib3"])
    sent = a_run(a_trial(idle_pss_bytes=30 << 20), workloads={"workload": Workload(upload_size=1 << 20)})
    assert "32.0 MiB 2.00 MiB" in " ".join(cells(shown(sent))["urllib3"])
    assert "above idle" not in shown(a_run(a_trial(idle_pss_bytes=30 << 20)))


def test_memory_that_is_unknown_is_no_resident_set():
    """A resident set counts shared pages in each process, so it is in no column, whether memory is known or not."""
    unknown = shown(a_run(a_trial(peak_pss_bytes=None)))
    assert "40.0 MiB" not in unknown
    assert "memory" not in unknown.partition("urllib3")[0]
    partly = shown(a_run(a_trial(peak_pss_bytes=None), a_trial("pycurl")))
    assert "–" in cells(partly)["urllib3"]
    known = shown(a_run(a_trial()))
    assert "32.0 MiB" in known
    assert "40.0 MiB" not in known


def test_a_noisy_arm_and_one_whose_rounds_differ_widely_are_marked():
    """With the sign of cautions behind its name; the others are not."""
    noise = Noise(seconds=1.0, others_cpu_seconds=0.9)
    walls = (1.0, 1.5, 2.0)
    trials = [*(a_trial("calm", n) for n in (1, 2, 3)), *(a_trial("noisy", n, noise=noise) for n in (1, 2, 3)),
              *(a_trial("wide", n, wall) for n, wall in enumerate(walls, 1))]  # fmt: skip
    marked = {row.name: row.marked for row in groups_of(a_run(*trials))[0].rows}
    assert marked == {"calm": "calm", "noisy": "noisy !", "wide": "wide !"}
    assert "noisy !" in shown(a_run(*trials))


def test_the_librarys_own_elapsed_is_a_column_only_where_it_was_asked_for():
    """The library's own elapsed time, summed over a trial's requests, is a column only if the workload records it."""
    assert "own elapsed" not in shown(RUN)
    timed = a_run(a_trial(elapsed_seconds_sum=1.5))
    assert "own elapsed" in shown(timed)
    assert " 1.50 s " in shown(timed)


def test_the_heading_tells_question_answer_run_and_machine():
    """The report begins with the question, the answer, the load, the run and the machine."""
    first, answer, load, second, *_ = shown(RUN).splitlines()
    assert first == "Which is fastest?"
    assert answer == "urllib3 made 1,000 requests/s, 2.00 (1.56 to 2.56) times as fast as pycurl."
    assert load == "Each trial: GET /, 1,000 requests."
    measured = "2024-05-06 07:08:09 UTC · 6 of 6 trials done, 6,000 requests"
    assert second == f"run {RUN.run} · done · {measured} · A CPU, 4 cores · CPython 3.11.7"


def test_cautions_stand_between_the_answer_and_the_numbers():
    """So that nobody reads a table without them."""
    doubt = Caution(kind="x", text="something is wrong", advice="mend it")
    text = shown(RUN.model_copy(update={"cautions": [doubt]}))
    caution, heading = text.index("! something is wrong - mend it"), text.index("req/s")
    assert text.index("urllib3 made 1,000 requests/s") < caution < heading
    assert "! Cautions: x.\n" in shown(RUN.model_copy(update={"cautions": [doubt, doubt]}), whole=False)


@pytest.mark.parametrize("word", ["[bold]x[/bold]", "[/]", "a[0]", ":smile:", "100%"])
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


def test_each_way_to_an_upstream_has_its_table():
    """With its title, in the experiment's order."""
    text = shown(a_run(a_trial(route="proxy"), a_trial(), a_trial(upstream="flask")))
    titles = [line for line in text.splitlines() if " upstream · " in line and "made" not in line]
    assert titles == [f"workload · {way} · c=1" for way in
                      ("aiohttp upstream · proxy", "aiohttp upstream · direct", "flask upstream · direct")]  # fmt: skip


def test_the_shares_behind_a_bottleneck_stand_beside_it():
    """In a column of their own, which only runs without shares lack."""
    busy = {"client": 0.49, "upstream": 0.4, "proxy": 0.11}
    text = shown(a_run(a_trial("urllib3", verdict="chain", busy=busy)), 200)
    assert "shares" in text
    assert " ".join(cells(text)["urllib3"]).endswith("chain client 49 %, upstream 40 %, proxy 11 %")
    assert "shares" not in shown(a_run(a_trial("urllib3")), 200)


def test_a_latency_that_holds_a_wait_for_a_connection_is_marked():
    """A latency that includes a wait for a connection is marked, and one of unknown kind is not."""
    waits = {"waits_for_connection": True}
    words = " ".join(cells(shown(a_run(a_trial("urllib3", **waits), a_trial("pycurl"))))["urllib3"])
    assert "2.00 ms* 9.00 ms* 1 0 1 500 µs" in words
    assert "*" not in " ".join(cells(shown(a_run(a_trial("urllib3", latency_seconds=None, **waits))))["urllib3"])


def test_a_strategy_that_failed_has_no_row():
    """It has no figures, only its reason; a run of failures alone has no table of figures."""
    text = shown(a_run(a_trial("urllib3"), a_failed_trial("pycurl")))
    assert set(cells(text)) == {"urllib3"}
    nothing = shown(a_run(a_failed_trial("pycurl")))
    assert "x fastest" not in nothing
    assert "failed: it broke" in nothing
    assert nothing.splitlines()[1] == "No trial finished."


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
