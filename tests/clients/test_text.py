"""Text shown to users: nothing that a terminal or a browser would obey, and no
credentials.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from clientlab.cli import run_command_line
from clientlab.conformance.server import counting_server, ok
from clientlab.reports import as_csv
from clientlab.results.plan import EnvironmentSpec, Target
from clientlab.results.store import RUN_FILE, Store
from clientlab.text import MASK, make_printable, mask_text
from clientlab.workload.workload import make_workload
from clients.documents import a_failed_trial, a_run, a_trial

PLACE = "a-place"
HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202eevil\u2066\x00\r\uffff"


def test_only_control_characters_are_replaced():
    assert make_printable("a\tb\nÄ 中 עב 🙂") == "a\tb\nÄ 中 עב 🙂"
    assert set(make_printable(HOSTILE)) - set("]0;title[2J31mevil") == {"\ufffd"}


@pytest.fixture
def hostile(tmp_path):
    """A store with a run whose arm, reason and error kind contain such characters."""
    arm = f"pycurl {PLACE}"
    trials = (
        a_trial(arm=arm, errors={PLACE: 1}),
        a_failed_trial("urllib3", f"503 {PLACE}", arm=arm, number=2, order=1),
    )
    run = a_run(*trials)
    file = Store(tmp_path).claim(run.run) / RUN_FILE
    file.write_text(run.model_dump_json().replace(PLACE, json.dumps(HOSTILE)[1:-1]))
    return Store(tmp_path)


def test_subcommands_print_printable_text(hostile, capfd):
    path = str(hostile.folder / hostile.names()[0] / RUN_FILE)
    for words in (
        ["report", path],
        ["runs", "--out", str(hostile.folder)],
        ["compare", path, path, "--force"],
    ):
        run_command_line(words)
        out, err = capfd.readouterr()
        assert len(out) > 20
        assert make_printable(out + err) == out + err
    assert run_command_line(["report", f"none{HOSTILE.replace(chr(0), '')}"]) == 2
    err = capfd.readouterr().err
    assert make_printable(err) == err


def test_text_files_are_printable(hostile, tmp_path):
    files = {name: tmp_path / f"found.{name}" for name in ("csv", "markdown", "junit")}
    options = [f"--{name}={file}" for name, file in files.items()]
    words = ["report", "last", "--out", str(hostile.folder), *options]
    assert run_command_line(words) == 0
    for file in files.values():
        assert make_printable(file.read_text()) == file.read_text()
    ET.fromstring(files["junit"].read_text())  # noqa: S314 - the lab wrote it


@pytest.mark.parametrize("first", ["=", "@"])
def test_a_cell_of_csv_is_never_a_formula(first):
    text = as_csv.render(a_run(a_failed_trial("urllib3", f"{first}HYPERLINK(1)")))
    assert f",{first}HYPERLINK" not in text
    assert f"'{first}HYPERLINK(1)" in text


@pytest.mark.real
def test_the_status_line_of_a_server_is_printed_without_control_characters(
    tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    lines = b"503 \x1b]0;title\x07\x9b31m\xe2\x80\xaeevil", b"\x1b[2Jevil\xff"
    answers = [b"HTTP/1.1 " + line + b"\r\nContent-Length: 0\r\n\r\n" for line in lines]

    def answer(_):
        count = len(server.seen)
        return ok() if count <= 1 else answers[count % 2]

    words = ["run", "-n", "3", "--rounds", "1", "--all"]
    for name in ("http.client", "requests", "aiohttp", "httpx-client"):
        words += ["-t", name]
    with counting_server(answer) as server:
        assert run_command_line([*words, "--url", server.url]) == 3
    out, err = capfd.readouterr()
    assert make_printable(out + err) == out + err


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Authorization: Bearer SECRET", "Authorization: …"),
        (
            "Illegal header ('cookie', 'sid=SECRET') in GET /a?b=c",
            "Illegal header ('cookie', '…') in GET /a?b=c",
        ),
        ("b'Proxy-Authorization', b'Basic SECRET'", "b'Proxy-Authorization', b'…'"),
        (
            "mine @ git+https://user:SECRET@host.test/mine.git",
            "mine @ git+https://…@host.test/mine.git",
        ),
        ("Accept: text/x", "Accept: text/x"),
        ("no UTF-8 \udcff", "no UTF-8 ?"),
        ("x-api-key: SECRET", "x-api-key: …"),
        ("--header=apikey: SECRET", "--header=apikey: …"),
        ("('X-Amz-Security-Token', 'SECRET')", "('X-Amz-Security-Token', '…')"),
        ("http://h.test/a?b=1&api_key=SECRET&c=2", "http://h.test/a?b=1&api_key=…&c=2"),
        (
            "Max retries: /a?accessToken=SECRET (Caused by x)",
            "Max retries: /a?accessToken=… (Caused by x)",
        ),
        ("/a?X-Amz-Signature=SECRET#end", "/a?X-Amz-Signature=…#end"),
        (
            "/a?author=me&keyword=x&max_tokens=5&key={k}",
            "/a?author=me&keyword=x&max_tokens=5&key={k}",
        ),
        (
            "KeyError: x; unknown key: a; no token: <",
            "KeyError: x; unknown key: a; no token: <",
        ),
    ],
)
def test_credentials_in_a_text_are_masked(text, masked):
    assert mask_text(text) == masked


def test_a_plan_and_its_target_are_stored_without_secrets():
    """By the names of headers and query parameters, whatever their case."""
    headers = {
        "x-api-key": "SECRET",
        "X-Auth-Token": "SECRET",
        "Cookie": "SECRET",
        "Accept": "text/x",
        "Author": "me",
    }
    workload = make_workload(path="/a?token=SECRET&page=2", headers=headers)
    plan = a_run(workloads={"workload": workload}).experiment.masked()
    stored = plan.workloads["workload"].request
    assert stored.path == "/a?token=…&page=2"
    shown = [name for name, value in stored.headers.items() if value != MASK]
    assert shown == ["Accept", "Author"]
    assert "SECRET" not in plan.model_dump_json() + repr(plan)
    assert plan.measured_workload("workload") == workload
    url = "http://h.test/?sig=SECRET&client_secret=SECRET"
    target = Target(testbed="external", servers={"a": url})
    assert target.masked().urls == {"a": "http://h.test/?sig=…&client_secret=…"}


def test_requirements_are_stored_without_credentials():
    requirement = "mine @ https://user:SECRET@host.test/mine.whl"
    spec = EnvironmentSpec(requirements=[requirement])
    plan = a_run().experiment.updated(environments={"e": spec})
    stored = plan.masked().environments["e"]
    assert stored.requirements == ["mine @ https://…@host.test/mine.whl"]


@pytest.mark.real
def test_a_resumed_run_needs_its_secret_url_again(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    fails = [True]

    def answer(_):
        return None if fails and len(server.seen) > 1 else ok()

    resume = ["run", "--resume", "last"]
    with counting_server(answer) as server:
        url = f"{server.url}/a?api_key=SECRET&b=1"
        words = ["run", "-t", "urllib3", "-n", "2", "--rounds", "1", "--url", url]
        monkeypatch.setattr(sys, "argv", ["clientlab", *words])
        assert run_command_line([*words, "--html", "a.html", "--json"]) == 3
        server.reset()
        assert run_command_line(resume) == 2
        another = url.replace("b=1", "b=2")
        assert run_command_line([*resume, "--url", another]) == 2
        assert server.seen == []
        fails.clear()
        assert run_command_line([*resume, "--url", url]) == 0
    for seen in server.seen:
        assert seen.target == "/a?api_key=SECRET&b=1"
    said = "".join(capfd.readouterr())
    assert "api_key=…" in said
    assert "SECRET" not in said
    for path in tmp_path.rglob("*"):
        if path.suffix in {".json", ".jsonl", ".html"}:
            assert "SECRET" not in path.read_text()


@pytest.mark.real
def test_a_resumed_run_needs_its_secret_headers_again(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    header = "Authorization: Bearer SECRET"
    said = []

    def call(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["clientlab", *words])
        code = run_command_line(words)
        said.append("".join(capfd.readouterr()))
        return code

    fails = [True]
    with counting_server(
        lambda _: None if fails and len(server.seen) > 1 else ok()
    ) as server:
        words = (
            "-t",
            "urllib3",
            "-n",
            "2",
            "--rounds",
            "1",
            "--header",
            header,
            "--url",
            server.url,
        )
        assert call("run", *words, "--html", "a.html", "--json") == 3
        server.reset()
        assert call("run", "--resume", "last") == 2
        assert "add --header 'Authorization: VALUE'" in said[-1]
        assert (
            call(
                "run", "--resume", "last", "--header", header, "--header", "X-Other: x"
            )
            == 2
        )
        assert server.seen == []
        fails.clear()
        assert call("run", "--resume", "last", "--header", header) == 0
    assert {one.headers["authorization"] for one in server.seen} == {"Bearer SECRET"}
    run = Store(Path("results")).read("last")
    assert next(iter(run.experiment.workloads.values())).request.headers == {
        "Authorization": "…"
    }
    assert "--header 'Authorization: …'" in run.experiment.command
    texts = [
        *said,
        *(
            path.read_text()
            for path in tmp_path.rglob("*")
            if path.suffix in {".json", ".jsonl", ".html"}
        ),
    ]
    assert not [text for text in texts if "SECRET" in text]
