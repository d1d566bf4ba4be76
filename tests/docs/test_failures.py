"""The tables of the page on failures: each figure, counted anew from the stored run."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from statistics import median

import pytest

from docs.stored_runs import stored_run
from findings.failures import FAILURES, idle_answer, losing_slots, table_of
from findings.page import PICTURES, run_file


def trials_of(name: str) -> dict[str, list[dict]]:
    """The trials of a stored run, as JSON, by arm."""
    found = defaultdict(list)
    for trial in json.loads(gzip.decompress(run_file(name).read_bytes()))["trials"]:
        found[trial["arm"]].append(trial)
    return found


def cells_of(name: str) -> dict[tuple[str, str], str]:
    """(Row, heading) → the cell."""
    table = table_of(stored_run(name))
    return {(row[0], head): cell for row in table.rows for head, cell in zip(table.headings[1:], row[1:], strict=True)}


@pytest.mark.parametrize(("name", "pauses"), [("idle", ("1.8", "2.01", "2.2")), ("idle-5", ("4.5", "5.01", "5.5"))])
def test_failed_requests_of_idle_connections_are_counted(name, pauses):
    """By client, method and pause, over all rounds; the sentence has the fewest and the most."""
    cells = cells_of(name)
    assert {head.split()[1] for _, head in cells} == set(pauses)
    found = {"GET": 0, "POST": 0}
    for (_, head), cell in cells.items():
        found[head.partition(",")[0]] += int(cell.partition(" of ")[0])
    counted = {"GET": 0, "POST": 0}
    for arm, trials in trials_of(name).items():
        counted["GET" if "(get)" in arm else "POST"] += sum(sum(trial["errors"].values()) for trial in trials)
    assert found == counted
    assert all(f"{pause} s" in idle_answer(stored_run(name)) for pause in pauses)


def test_what_cancelled_requests_leave_is_the_worst_of_the_rounds():
    """Slots of the first probe less those of the second."""
    cells = cells_of("cancel")
    worst = max(
        trial["cancelled"]["before"]["at_once"] - trial["cancelled"]["after"]["at_once"]
        for trial in trials_of("cancel")["httpx-async@workers[cancel=50%@0ms-20ms]"]
    )
    assert cells["httpx-async@workers", "50% given up"].startswith(f"{worst} of 20 slots lost")
    assert f"httpx-async@workers ({worst} of 20)" in losing_slots(stored_run("cancel"))
    assert {cell for (client, _), cell in cells.items() if client == "niquests-async@workers?pool=10"} == {"hangs"}


def test_served_requests_of_a_policy_are_the_median_of_the_rounds():
    """The share that succeeded."""
    shares = [
        1 - sum(trial["errors"].values()) / trial["requests"] for trial in trials_of("resilience")["none (status-50)"]
    ]
    shown = cells_of("resilience")["none", "status-50"]
    assert float(shown.split()[0]) == pytest.approx(100 * median(shares), abs=0.1)


@pytest.mark.parametrize("name", FAILURES)
def test_a_picture_has_the_rows_and_columns_of_its_table(name):
    """As text, which is kept in an SVG's comments."""
    words = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    table = table_of(stored_run(name))
    assert all(f"<!-- {row[0]} -->" in words for row in table.rows)
    assert len(table.headings) > 2
