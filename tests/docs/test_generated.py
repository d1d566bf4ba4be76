"""The blocks that scripts/generate writes are current, and scripts/findings stores runs
that can be read.
"""

from __future__ import annotations

import json

import pytest
import urllib3  # noqa: F401 - binds a socket as it is imported, which a pure test must not do

from clientlab.results.store import read_run
from clients.documents import a_run, a_trial
from findings import __main__ as program
from generate.__main__ import ROOT, BlockError, find_stale_pages, refresh

PAGE = """# Title

<!-- $ clientlab list executors --markdown -->
old
<!-- end -->

end
"""


def test_the_blocks_of_the_documentation_are_current():
    """Run scripts/generate after a change; nobody edits a block."""
    assert [str(path.relative_to(ROOT)) for path in find_stale_pages()] == []


def test_a_block_is_replaced_and_all_else_is_kept():
    text = refresh(PAGE)
    assert text.startswith(
        "# Title\n\n<!-- $ clientlab list executors --markdown -->\n\n| name |"
    )
    assert text.endswith("|\n\n<!-- end -->\n\nend\n")
    assert refresh(text) == text


@pytest.mark.parametrize(
    "text",
    [
        PAGE.replace("<!-- end -->\n", ""),
        PAGE.replace("clientlab list executors", "ls"),
        PAGE.replace("executors", "everything"),
        PAGE.replace(
            "list executors --markdown",
            "report findings/shown/demo.json.gz --markdown | claims",
        ),
    ],
)
def test_a_wrong_block_is_refused(text):
    with pytest.raises(BlockError):
        refresh(text)


def test_a_stored_run_is_read_as_it_was(tmp_path, monkeypatch):
    """The same run gives the same bytes; one of many trials loses what no
    page shows.
    """
    run = a_run(a_trial("urllib3", 1), a_trial("urllib3", 2))
    (tmp_path / "run.json").write_text(run.model_dump_json())
    program.store(tmp_path / "run.json", tmp_path / "one.json.gz")
    program.store(tmp_path / "run.json", tmp_path / "two.json.gz")
    assert (tmp_path / "one.json.gz").read_bytes() == (
        tmp_path / "two.json.gz"
    ).read_bytes()
    assert json.loads(
        read_run(tmp_path / "one.json.gz").model_dump_json()
    ) == json.loads(run.model_dump_json())
    monkeypatch.setattr(program, "MOST_TRIALS", 1)
    program.store(tmp_path / "run.json", tmp_path / "two.json.gz", "clientlab run it")
    found = read_run(tmp_path / "two.json.gz")
    assert [trial.figures.histogram for trial in found.trials] == [None, None]
    assert found.experiment.command == "clientlab run it"
