"""What follows from the code is written by scripts/generate, and is up to date in the repository."""

from __future__ import annotations

from collections import Counter

import pytest
from click.testing import CliRunner

from clientlab.strategies import EVERY_CLIENT, EXECUTORS, LISTED, settings_of
from generate import registry
from generate.__main__ import generate
from generate.blocks import BlockMissing, Generated

PAGE = """# Title

<!-- generated: one -->
old
<!-- /generated -->

<!-- generated: two -->
<!-- /generated -->
end
"""


@pytest.fixture(scope="module")
def expected():
    """Path from the repository's root → the text that the file is to have."""
    return registry.expected()


@pytest.mark.parametrize("path", sorted({entry.path for entry in registry.GENERATED}))
def test_a_generated_file_is_up_to_date(path, expected):
    """Run scripts/generate after a change of what it reads; nobody edits the result."""
    assert (registry.ROOT / path).read_text(encoding="utf-8") == expected[path], f"{path}: run scripts/generate"


def test_a_file_is_generated_whole_or_by_blocks_and_each_block_once():
    """A second entry for the same place would overwrite the first."""
    places = Counter((entry.path, entry.marker) for entry in registry.GENERATED)
    assert [place for place, count in places.items() if count > 1] == []
    whole = {path for path, marker in places if not marker}
    assert whole.isdisjoint(path for path, marker in places if marker)


def test_the_table_of_strategies_names_each_of_them(expected):
    """The generator reads the list itself, and leaves none out."""
    page = expected["docs/strategies.md"]
    for name in (*LISTED, *EVERY_CLIENT, *EXECUTORS):
        assert f"\n| {name} |" in page
    for spec in (*EVERY_CLIENT.values(), *EXECUTORS.values()):
        for setting in settings_of(spec.import_path):
            assert f"\n| `?{setting}=` |" in page


def test_a_block_is_replaced_and_all_else_is_kept():
    """With an empty line on both sides, as Markdown needs it between a comment and a table."""
    entry = Generated("page.md", lambda: "| new |\n\n", marker="one")
    assert entry.applied(PAGE) == PAGE.replace("old\n", "\n| new |\n\n")
    assert entry.applied(entry.applied(PAGE)) == entry.applied(PAGE)


def test_a_block_of_yaml_keeps_its_indentation():
    """Its markers are comments of that language."""
    text = "services:\n  # generated: workers\n  old: {}\n  # /generated\n  lab: {}\n"
    entry = Generated("compose.yaml", lambda: "  new: {}\n", marker="workers")
    assert entry.applied(text) == text.replace("old", "new")


def test_a_file_without_the_block_is_an_error_that_names_it():
    """The generator does not guess where the block belongs."""
    with pytest.raises(BlockMissing, match=r"^page\.md: no block 'three'; write the lines <!-- "):
        Generated("page.md", lambda: "", marker="three").applied(PAGE)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A root with one stale page, one page that is up to date, and one that does not exist yet."""
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "fresh.txt").write_text("fresh\n")
    entries = (
        Generated("page.md", lambda: "1", marker="one"),
        Generated("page.md", lambda: "2", marker="two"),
        Generated("fresh.txt", lambda: "fresh"),
        Generated("folder/new.txt", lambda: "new"),
    )
    monkeypatch.setattr(registry, "ROOT", tmp_path)
    monkeypatch.setattr(registry, "GENERATED", entries)
    return tmp_path


def test_stale_files_are_named_and_written_once(elsewhere):
    """--check writes nothing and exits 1; afterwards all is up to date."""
    checked = CliRunner().invoke(generate, ["--check"])
    assert (checked.exit_code, checked.stdout) == (1, "stale: page.md\nstale: folder/new.txt\n")
    assert (elsewhere / "page.md").read_text() == PAGE
    written = CliRunner().invoke(generate, [])
    assert (written.exit_code, written.stdout) == (0, "written: page.md\nwritten: folder/new.txt\n")
    assert "\n1\n" in (elsewhere / "page.md").read_text()
    assert "\n2\n" in (elsewhere / "page.md").read_text()
    assert (elsewhere / "folder" / "new.txt").read_text() == "new\n"
    assert CliRunner().invoke(generate, ["--check"]).exit_code == 0


def test_a_missing_block_is_one_line(elsewhere):
    """A generated block that is missing from its page is reported in one line without a traceback."""
    (elsewhere / "page.md").write_text("nothing\n")
    result = CliRunner().invoke(generate, [])
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: page.md: no block 'one'; ")
    assert len(result.stderr.splitlines()) == 1
