"""Texts from servers, plug-ins and files hold nothing that a terminal or a browser would obey."""

from __future__ import annotations

import json

import pytest

from clientlab.cli import run_command_line
from clientlab.printable import printable
from clientlab.reports import as_csv, as_html, as_junit, as_markdown
from clientlab.results.store import RUN_FILE, Store
from clients.documents import a_failed_trial, a_run, a_trial

PLACE = "a-place"
HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202eevil\u2066\x00\r"


def test_only_characters_that_are_obeyed_are_replaced():
    """Tabs, line feeds and letters of any script stay."""
    assert printable("a\tb\nÄ 中 עב 🙂") == "a\tb\nÄ 中 עב 🙂"
    assert set(printable(HOSTILE)) - set("]0;title[2J31mevil") == {"\ufffd"}


@pytest.fixture
def hostile(tmp_path):
    """The file of a run with such texts as the name of an arm, a reason, and the kind of an error."""
    arm = f"pycurl {PLACE}"
    trials = a_trial(arm=arm, errors={PLACE: 1}), a_failed_trial("urllib3", f"503 {PLACE}", arm=arm, number=2, order=1)
    run = a_run(*trials)
    file = Store(tmp_path).claim(run.run) / RUN_FILE
    file.write_text(run.model_dump_json().replace(PLACE, json.dumps(HOSTILE)[1:-1]))
    return Store(tmp_path)


@pytest.mark.parametrize("words", [["report"], ["runs"], ["compare"]])
def test_no_subcommand_prints_them(words, hostile, capfd):
    """In tables, in Markdown, and on standard error."""
    path = str(hostile.folder / hostile.names()[0] / RUN_FILE)
    given = {"report": [path], "runs": ["--out", str(hostile.folder)], "compare": [path, path, "--force"]}
    run_command_line([*words, *given[words[0]]])
    out, err = capfd.readouterr()
    assert len(out) > 20
    assert printable(out + err) == out + err


def test_no_export_holds_them(hostile):
    """CSV, Markdown, JUnit and the HTML report."""
    run = hostile.read("last")
    for text in (as_csv.render(run), as_markdown.render(run), as_junit.render(run, []), as_html.render(run)):
        assert printable(text) == text


def test_an_error_message_holds_none(capfd):
    """What the user wrote is shown without them."""
    assert run_command_line(["report", f"none{HOSTILE.replace(chr(0), '')}"]) == 2
    err = capfd.readouterr().err
    assert printable(err) == err


@pytest.mark.parametrize("first", ["=", "@"])
def test_a_cell_of_csv_is_no_formula(first):
    """A spreadsheet would compute it when the file is opened."""
    text = as_csv.render(a_run(a_failed_trial("urllib3", f"{first}HYPERLINK(1)")))
    assert f",{first}HYPERLINK" not in text
    assert f"'{first}HYPERLINK(1)" in text
