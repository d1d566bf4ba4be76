"""The short form of a report: the answer, cautions in a line, and a table that fits; nothing is cut without a word."""

from __future__ import annotations

import ast
import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from clientlab.judging import cautions
from clientlab.reports import as_markdown, as_terminal
from clientlab.reports.cautions_in_brief import PHRASES
from clientlab.reports.figure_tables import figure_table
from clientlab.reports.rows import groups_of
from clientlab.results.bottleneck import Bound
from clientlab.results.document import Caution
from clients.bundled_runs import BUNDLED, a_bundled_run
from clients.documents import a_run, a_trial

ANSWER = "urllib3 made 1,000 requests/s, 2.00 (1.55 to 2.56) times as fast as requests-session@processes."
RUN = a_run(
    *(a_trial("urllib3", number, concurrency=2) for number in (1, 2, 3)),
    *(a_trial("requests-session@processes", number, wall, concurrency=2)
      for number, wall in enumerate((2.0, 2.2, 1.8), start=1)),
)  # fmt: skip


def printed(run, width: int, height: int = 1000, *, terminal: bool = False) -> str:
    """What a console of that size shows."""
    file = io.StringIO()
    screen = Console(file=file, width=width, height=height, force_terminal=terminal, color_system=None)
    screen.print(as_terminal.render(run), highlight=False)
    return file.getvalue()


@pytest.mark.parametrize("name", BUNDLED)
def test_tables_have_at_most_eight_columns_and_fit_100_letters(name):
    """Those of every bundled experiment, on a console that is wider."""
    run = a_bundled_run(name)
    assert all(len(figure_table(group).short.headings) <= 8 for group in groups_of(run))
    blocks = re.findall(r"(?:^ .*\n)+", printed(run, 200), re.MULTILINE)
    tables = [block for block in blocks if "───" in block and "verdict" not in block]
    assert len(tables) >= len(groups_of(run))
    assert max(len(line.rstrip()) for block in tables for line in block.splitlines()) <= 100


@pytest.mark.parametrize(
    ("width", "shown"), [(50, ["x fastest (95 %)"]), (100, ["x fastest (95 %)", "req/s", "p99", "bottleneck"])]
)
def test_a_narrow_terminal_has_the_most_important_columns_and_says_how_to_see_the_others(width, shown):
    """No column is cut, and none is left out silently."""
    text = printed(RUN, width)
    assert all(heading in text for heading in shown)
    assert "clientlab report" in text
    assert "--all" in text
    assert max(map(len, text.splitlines())) <= width


def test_the_answer_is_in_sight_in_a_low_terminal():
    """It comes first; where the report scrolled it away, once more at the end; and once only in a file."""
    low, high = printed(RUN, 150, 10, terminal=True), printed(RUN, 150, 100, terminal=True)
    assert low.splitlines()[1] == low.rstrip().splitlines()[-1] == ANSWER
    assert high.count(ANSWER) == printed(RUN, 150, 10).count(ANSWER) == 1


def test_cautions_are_one_line_and_in_full_where_they_are_asked_for():
    """In Markdown, they are folded."""
    found = [
        Caution(kind="busy-machine", text="the load was 3", advice="wait"),
        Caution(kind="short-trials", text="trials took 1 ms", advice="raise -n"),
        Caution(kind="short-trials", text="trials took 2 ms", advice="raise -n"),
    ]
    run = RUN.model_copy(update={"cautions": found})
    brief = "Cautions: measured on a busy machine, short trials."
    assert f"! {brief}\n" in printed(run, 150)
    assert "the load was 3" not in printed(run, 150)
    shown, folded = as_markdown.render(run).split("<details>")
    assert f"> {brief}\n" in shown
    assert all(one.text in folded and one.text not in shown for one in found)


def test_every_caution_of_the_lab_has_its_words():
    """A kind that has none would be shown as its key."""
    trees = [ast.parse(path.read_text()) for path in Path(cautions.__file__).parent.glob("*.py")]
    named = {
        word.value.value
        for tree in trees for call in ast.walk(tree) if isinstance(call, ast.Call)
        for word in call.keywords if word.arg == "kind" and isinstance(word.value, ast.Constant)
    }  # fmt: skip
    assert len(named) > 40
    assert named <= PHRASES.keys()
    assert PHRASES.keys() - named <= {*Bound.__args__}
