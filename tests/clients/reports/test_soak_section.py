"""The section on what grows in long trials."""

from __future__ import annotations

from clientlab.reports.as_csv import render
from clientlab.reports.contents import text_sections
from clientlab.reports.sections import Report
from clientlab.reports.soak_section import soak
from clientlab.results.soak import Growth, Soak
from clients.documents import a_run, a_trial

LEAK = Growth(per_hour=4 << 20, low=3 << 20, high=5 << 20, level=30 << 20, grows=True)
STEADY = Growth(per_hour=1.0, low=-2.0, high=4.0, level=12, grows=False)
FASTER = Growth(per_hour=-0.02, low=-0.03, high=-0.01, level=0.1, grows=False)
SOAK = Soak(memory=LEAK, open_files=STEADY, latency=FASTER, readings=[])


def test_what_grows_is_the_answer_and_a_table_has_every_level():
    """The sentence states the lower end of the interval, which a limit on the figure judges as well."""
    found = soak(Report(a_run(a_trial("urllib3").model_copy(update={"soak": SOAK}))))
    (sentence,) = found.sentences
    assert sentence.endswith("memory grows by at least 3.00 MiB per hour.")
    (table,) = found.parts[0].items
    assert [row[2:] for row in table.rows] == [
        ("memory", "+4.00 MiB", "+3.00 MiB to +5.00 MiB", "30.0 MiB", "grows"),
        ("open files", "+1", "-2 to +4", "12", "no growth found"),
        ("latency", "-20.0 ms", "-30.0 ms to -10.0 ms", "100 ms", "shrinks"),
    ]
    assert [table.tone(row[-1]) for row in table.rows] == ["bad", "good", ""]


def test_a_growth_that_ended_is_not_called_none():
    """Its interval is above 0, and the reader sees that."""
    filled = Soak(memory=LEAK.model_copy(update={"grows": False}), readings=[])
    found = soak(Report(a_run(a_trial("urllib3").model_copy(update={"soak": filled}))))
    assert found.sentences == []
    assert found.parts[0].items[0].rows[0][-1] == "grew little, or stopped"


def test_growth_in_some_of_several_rounds_is_stated_as_that():
    """With the smallest of the growths that were found."""
    less = Soak(memory=LEAK.model_copy(update={"low": float(2 << 20)}), readings=[])
    none = Soak(memory=STEADY, readings=[])
    trials = [a_trial("urllib3", n).model_copy(update={"soak": s}) for n, s in enumerate((SOAK, less, none), start=1)]
    (sentence,) = soak(Report(a_run(*trials))).sentences
    assert sentence.endswith("memory grows by at least 2.00 MiB per hour in 2 of 3 rounds.")


def test_runs_without_long_trials_have_no_such_section():
    """Nor notes that explain what is not there."""
    assert "soak" not in {section.id for section in text_sections(Report(a_run(a_trial("urllib3"))))}


def test_csv_has_the_growth_with_its_interval():
    """And empty cells for a short trial."""
    run = a_run(a_trial("urllib3").model_copy(update={"soak": SOAK}), a_trial("pycurl"))
    head, *rows = [line.split(",") for line in render(run).splitlines()]
    place = head.index("growth_of_latency_low")
    assert sorted(row[place] for row in rows) == ["", "-0.03"]
