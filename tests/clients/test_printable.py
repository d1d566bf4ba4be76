"""Texts from servers, plug-ins and files hold nothing that a terminal or a browser would obey."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from clientlab.cli import run_command_line
from clientlab.conformance.server import counting_server, ok
from clientlab.printable import printable
from clientlab.reports import as_csv
from clientlab.results.store import RUN_FILE, Store
from clients.documents import a_failed_trial, a_run, a_trial

PLACE = "a-place"
HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202eevil\u2066\x00\r"


def test_only_characters_that_are_obeyed_are_replaced():
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
    path = str(hostile.folder / hostile.names()[0] / RUN_FILE)
    given = {"report": [path], "runs": ["--out", str(hostile.folder)], "compare": [path, path, "--force"]}
    run_command_line([*words, *given[words[0]]])
    out, err = capfd.readouterr()
    assert len(out) > 20
    assert printable(out + err) == out + err


def test_no_text_file_holds_them(hostile, tmp_path):
    files = {name: tmp_path / f"found.{name}" for name in ("csv", "markdown", "junit")}
    options = [f"--{name}={file}" for name, file in files.items()]
    assert run_command_line(["report", "last", "--out", str(hostile.folder), *options]) == 0
    for file in files.values():
        assert printable(file.read_text()) == file.read_text()
    ET.fromstring(files["junit"].read_text())  # noqa: S314 - the lab wrote it


def test_an_error_message_holds_none(capfd):
    assert run_command_line(["report", f"none{HOSTILE.replace(chr(0), '')}"]) == 2
    err = capfd.readouterr().err
    assert printable(err) == err


@pytest.mark.parametrize("first", ["=", "@"])
def test_a_cell_of_csv_is_no_formula(first):
    """A spreadsheet would compute it when the file is opened."""
    text = as_csv.render(a_run(a_failed_trial("urllib3", f"{first}HYPERLINK(1)")))
    assert f",{first}HYPERLINK" not in text
    assert f"'{first}HYPERLINK(1)" in text


@pytest.mark.real
@pytest.mark.parametrize("status", [b"503 \x1b]0;title\x07\x9b31m\xe2\x80\xaeevil", b"\x1b[2Jevil\xff"])
def test_the_status_line_of_a_server_does_not_reach_the_terminal(status, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    answer = b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n"
    with counting_server(lambda _: answer if len(server.seen) > 1 else ok()) as server:
        words = [word for name in ("http.client", "requests", "aiohttp", "httpx-client") for word in ("-t", name)]
        assert run_command_line(["run", *words, "-n", "3", "--rounds", "1", "--url", server.url, "--all"]) == 3
    out, err = capfd.readouterr()
    assert printable(out + err) == out + err
    run_command_line(["run", "--resume", "last", "--json"])
    out, err = capfd.readouterr()
    assert printable(out + err) == out + err
