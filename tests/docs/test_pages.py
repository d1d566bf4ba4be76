"""The pages: their commands and code can be read, and their links lead somewhere."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from textwrap import dedent

import click

from clientlab.cli import commands
from clients.plans import checked_plan
from docs.pages import DOCS, ROOT, TEXTS

EXAMPLES = [
    (path, line.strip())
    for path, text in TEXTS.items()
    for block in re.findall(r"```(?:sh|yaml)\n(.*?)```", text, re.DOTALL)
    for line in block.splitlines()
    if line.strip().startswith("clientlab ") and "…" not in line
]
"""Path and line of each command in a block of code."""


def unknown_words(line: str) -> list[str]:
    """The subcommand or the options of a command that do not exist."""
    words = shlex.split(line.partition(" | ")[0], comments=True)
    command = commands
    while isinstance(command, click.Group) and words[1:]:
        below = command.get_command(click.Context(command), words[1])
        if below is None:
            return [words[1]]
        command = below
        words.pop(1)
    options = {"--help", "-h"}.union(*(option.opts for option in command.params))
    return [
        word
        for word in words[1:]
        if re.fullmatch(r"--?[a-z][a-z-]*", word) and word not in options
    ]


def test_the_commands_of_the_pages_exist_with_their_options():
    assert len(EXAMPLES) >= 20
    assert [
        (path, line, unknown)
        for path, line in EXAMPLES
        if (unknown := unknown_words(line))
    ] == []


def test_the_python_code_of_the_pages_is_python():
    for path, text in TEXTS.items():
        for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            ast.parse(dedent(code), path)


def test_the_experiments_that_are_shown_can_be_run(tmp_path):
    shown = r"<!-- (experiment|\S+\.toml) -->\n```toml\n(.*?)```"
    found = [
        match for text in TEXTS.values() for match in re.findall(shown, text, re.DOTALL)
    ]
    assert {name for name, _ in found} >= {"experiment", "crawl.toml", "idle.toml"}
    for name, text in found:
        path = tmp_path / (name if "." in name else f"{name}.toml")
        path.write_text(text)
        assert checked_plan(path).arms


def test_every_file_that_is_linked_exists():
    """Anchors are checked when the site is built."""
    missing = [
        (path, target)
        for path, text in TEXTS.items()
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", text)
        if not ((ROOT / path).parent / target).exists()
    ]
    assert missing == []


def test_every_folder_and_file_that_is_named_exists():
    folders = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and not path.name.startswith(".")
    }
    missing = [
        (path, name)
        for path, text in TEXTS.items()
        for code in re.findall(r"`([^`\n]+)`", text)
        for name in (word.rstrip(",.;:/").partition("::")[0] for word in code.split())
        if "/" in name and name.partition("/")[0] in folders - {"results", "site"}
        if not re.search(r"[<{*…]|NAME", name) and not (ROOT / name).exists()
    ]
    assert missing == []


def _pages(nav):
    for entry in nav:
        for value in entry.values():
            yield from _pages(value) if isinstance(value, list) else [value]


def test_every_page_has_its_place_in_the_navigation_and_every_place_its_page():
    """The strict build looks at links, and not at the navigation."""
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))[
        "project"
    ]["nav"]
    assert sorted(_pages(nav)) == sorted(path.name for path in DOCS.glob("*.md"))
