"""What follows from the code is written by scripts/generate, and is up to date in the repository."""

from __future__ import annotations

import pytest
import urllib3  # noqa: F401 - binds a socket as it is imported, which a pure test must not do
from click.testing import CliRunner

from findings.page import DOCS, render, stored_names, stored_run
from generate import registry
from generate.__main__ import generate
from generate.blocks import BlockMissing, Generated

PAGE = """# Title

<!-- generated: one -->
old
<!-- /generated -->

end
"""


def test_the_generated_files_are_up_to_date():
    """Run scripts/generate after a change of what it reads; nobody edits the result."""
    assert registry.stale() == []


def test_the_findings_are_what_their_run_files_give():
    """scripts/findings writes these pages; nobody edits them."""
    pages = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("findings*.md")}
    assert render({name: stored_run(name) for name in stored_names()}) == pages


def test_a_block_is_replaced_and_all_else_is_kept():
    """With an empty line on both sides, as Markdown needs it between a comment and a table."""
    entry = Generated("page.md", lambda: "| new |\n\n", marker="one")
    assert entry.applied(PAGE) == PAGE.replace("old\n", "\n| new |\n\n")
    assert entry.applied(entry.applied(PAGE)) == entry.applied(PAGE)
    with pytest.raises(BlockMissing, match="three"):
        Generated("page.md", lambda: "", marker="three").applied(PAGE)


def test_stale_files_are_named_and_written_once(tmp_path, monkeypatch):
    """--check writes nothing and exits 1; afterwards all is up to date."""
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "fresh.txt").write_text("fresh\n")
    entries = (
        Generated("page.md", lambda: "1", marker="one"),
        Generated("fresh.txt", lambda: "fresh"),
        Generated("folder/new.txt", lambda: "new"),
    )
    monkeypatch.setattr(registry, "ROOT", tmp_path)
    monkeypatch.setattr(registry, "GENERATED", entries)
    checked = CliRunner().invoke(generate, ["--check"])
    assert (checked.exit_code, checked.stdout) == (1, "stale: page.md\nstale: folder/new.txt\n")
    assert (tmp_path / "page.md").read_text() == PAGE
    assert CliRunner().invoke(generate, []).exit_code == 0
    assert "\n1\n" in (tmp_path / "page.md").read_text()
    assert (tmp_path / "folder" / "new.txt").read_text() == "new\n"
    assert CliRunner().invoke(generate, ["--check"]).exit_code == 0
