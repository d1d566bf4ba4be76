"""Documentation that cannot rot: what pages state, against the code."""

from __future__ import annotations

import re
import shlex
import tomllib

import click
import pytest

from clientlab import errors
from clientlab.cli import commands
from clientlab.experiments.experiment import ArmTable, ClaimTable, Experiment
from clientlab.experiments.file import bundled, read_experiment
from clientlab.results.document import Run
from docs.pages import DOCS, ROOT, TEXTS

README = TEXTS["README.md"]
OWN_EXPERIMENT = TEXTS["docs/own-experiment.md"]


def test_the_readme_is_one_page():
    """Everything else has its own page below docs/."""
    assert len(README.splitlines()) <= 120


def test_the_readme_begins_with_the_answer():
    """The picture, two commands that can be pasted, and a table of at most seven columns, before any heading."""
    first = README.partition("\n## ")[0]
    assert "![" in first
    (block,) = re.findall(r"```sh\n(.*?)```", first, re.DOTALL)
    assert len(block.splitlines()) == 2
    assert not re.search(r"…|<|[A-Z]{4}", block)  # nothing that a reader has to fill in
    table = re.search(r"^\| strategy \|.*$", first, re.MULTILINE)
    assert table
    assert table[0].count("|") - 1 <= 7


def test_every_subcommand_is_in_the_readme_and_every_subcommand_there_exists():
    """The table of subcommands names the command's own."""
    named = re.findall(r"^\| `(\w+)[^`]*` \|", README, re.MULTILINE)
    assert sorted(named) == commands.list_commands(click.Context(commands))


def test_every_bundled_experiment_is_in_the_table():
    """The demo is described in the README instead."""
    named = re.findall(r"^\| \*\*([a-z0-9-]+)\*\* \| [^|]+ \| [^|]+ \|$", OWN_EXPERIMENT, re.MULTILINE)
    assert set(named) == set(bundled()) - {"demo"}


def test_the_experiment_that_is_shown_can_be_run(tmp_path):
    """The file as the page shows it."""
    text = re.search(r"<!-- experiment -->\n```toml\n(.*?)```", OWN_EXPERIMENT, re.DOTALL)
    assert text
    (tmp_path / "search.toml").write_text(text[1])
    shown = read_experiment(tmp_path / "search.toml").checked_plan()
    assert len(shown.arms) == 6
    assert [claim.name for claim in shown.claims] == ["asyncio-is-faster"]


@pytest.mark.parametrize(
    ("heading", "model", "more"),
    [
        ("Keys of the file", Experiment, {"common"}),  # workloads, arms, claims and quick are tables of their own
        ("Keys of an arm", ArmTable, set()),
        ("Keys of a claim", ClaimTable, set()),
    ],
)
def test_every_key_of_an_experiment_file_is_described(heading, model, more):
    """The tables name the keys that a file may have, and no other."""
    section = OWN_EXPERIMENT.partition(f"# {heading}\n")[2].partition("\n#")[0]
    cells = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == more | (
        set(model.model_fields) - {"workloads", "arms", "claims"}
    )


EXAMPLES = [
    (path, line.strip())
    for path, text in TEXTS.items()
    for block in re.findall(r"```(?:sh|yaml)\n(.*?)```", text, re.DOTALL)
    for line in block.splitlines()
    if line.strip().startswith("clientlab ") and "…" not in line
]


@pytest.mark.parametrize(("path", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_the_options_of_the_examples_exist(path, line):
    """Every option of an example is one of its subcommand's."""
    words = shlex.split(line.partition(" | ")[0], comments=True)
    command, names = commands, []
    while isinstance(command, click.Group) and words[1:]:
        below = command.get_command(click.Context(command), words[1])
        if below is None:
            break
        command = below
        names.append(words.pop(1))
    assert names, f"{path}: {line}"
    options = {"--help", "-h"}.union(*(option.opts for option in command.params))
    for word in words[1:]:
        if re.fullmatch(r"--?[a-z][a-z-]*", word):
            assert word in options, f"{path}: {word}"


def test_there_are_examples():
    """The pattern that finds them still does."""
    assert len(EXAMPLES) >= 20


@pytest.mark.parametrize("path", TEXTS)
def test_every_file_that_is_linked_exists(path):
    """Links to files of the repository lead to one; anchors of pages are the strict build's."""
    folder = (ROOT / path).parent
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", TEXTS[path]):
        assert (folder / target).exists(), f"{path}: {target}"


FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")} - {
    "results",
    "site",
}


@pytest.mark.parametrize("path", TEXTS)
def test_every_file_that_is_named_exists(path):
    """A path in code, such as `findings/runs`, is one of the repository."""
    for code in re.findall(r"`([^`\n]+)`", TEXTS[path]):
        for word in code.split():
            name = word.rstrip(",.;:/").partition("::")[0]
            if "/" in name and name.partition("/")[0] in FOLDERS and not re.search(r"[<{*…]|NAME", name):
                assert (ROOT / name).exists(), f"{path}: {name}"
            elif re.fullmatch(r"[\w-]+\.(ya?ml|toml|md)|\.env", name) and name not in {
                "mine.py",
                "search.toml",
                "crawl.toml",
            }:
                assert (ROOT / name).exists() or (DOCS / name).exists(), f"{path}: {name}"


def test_the_exit_codes_are_those_of_the_code():
    """The README and the page on the command line state them."""
    assert errors.LabError.exit_code == 2
    assert errors.IncompleteRun.exit_code == 3
    assert "2 the arguments or the input are wrong" in README
    assert "3 the run is incomplete" in " ".join(README.split())
    page = TEXTS["docs/cli.md"]
    assert "| 2 | the arguments or the input are wrong" in page
    assert "| 3 | the run is incomplete" in page


def test_the_demo_is_the_one_described():
    """Eight strategies, four of them on both routes, with a budget of a minute."""
    demo = read_experiment(bundled()["demo"]).experiment
    assert (len(demo.strategies), len(demo.arms), demo.routes, demo.budget) == (4, 4, ["direct", "proxy"], 60.0)


def test_the_format_of_run_files_is_the_one_described():
    """The changelog names the version of the run file format that the code writes."""
    number = Run.model_fields["format"].default
    assert f"the run file, version {number}," in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def _pages(nav):
    for entry in nav:
        for value in entry.values():
            yield from _pages(value) if isinstance(value, list) else [value]


def test_every_page_has_its_place_in_the_navigation_and_every_place_its_page():
    """The strict build looks at links, and not at the navigation."""
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    assert sorted(_pages(nav)) == sorted(path.name for path in DOCS.glob("*.md"))


def test_what_few_readers_need_stands_in_the_second_half_of_the_navigation():
    """The first half is for those who ask which client to use, and how to measure."""
    pages = list(_pages(tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]))
    late = {f"{name}.md" for name in ("atlas", "metrics", "service", "shards", "kubernetes", "round-trips")}
    assert late <= set(pages[len(pages) // 2 :])
    assert pages[:2] == ["index.md", "recipes.md"]


def test_no_page_repeats_a_sentence_of_another():
    """A sentence that stands twice is mended once. Findings name their sources on each page."""
    pages: dict[str, list[str]] = {}
    for path, text in TEXTS.items():
        written = re.sub(r"```.*?```|<!-- generated.*?<!-- /generated -->", "", text, flags=re.DOTALL)
        sentences = {" ".join(part.split()) for part in re.split(r"(?<=[.:?])\s+|\n\n|\|", written)}
        for sentence in sentences if not path.startswith("docs/findings") else ():
            if len(sentence.split()) >= 9:
                pages.setdefault(sentence, []).append(path)
    assert len(pages) > 1000
    assert {sentence: found for sentence, found in pages.items() if len(found) > 1} == {}


PARAGRAPHS = [
    (path, paragraph)
    for path, text in TEXTS.items()
    if not path.startswith("docs/findings")
    for paragraph in re.split(r"\n\s*\n", re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL))
    if not re.match(r"\s*(\||#|-|\d+\.)", paragraph)
]


@pytest.mark.parametrize("path", [path for path in TEXTS if not path.startswith("docs/findings")])
def test_a_paragraph_has_at_most_five_lines(path):
    """A reader finds the answer in the first one."""
    assert [text for where, text in PARAGRAPHS if where == path and len(text.strip().splitlines()) > 5] == []
