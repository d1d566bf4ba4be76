"""Credentials do not get into run files: three headers, and users and passwords in URLs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from clientlab.cli import run_command_line
from clientlab.conformance.server import counting_server, ok
from clientlab.redaction import mask_text
from clientlab.results.plan import EnvironmentSpec
from clientlab.results.store import Store
from clients.documents import a_run


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Authorization: Bearer SECRET", "Authorization: …"),
        ("Illegal header ('cookie', 'sid=SECRET') in GET /a?b=c", "Illegal header ('cookie', '…') in GET /a?b=c"),
        ("b'Proxy-Authorization', b'Basic SECRET'", "b'Proxy-Authorization', b'…'"),
        ("mine @ git+https://user:SECRET@host.test/mine.git", "mine @ git+https://…@host.test/mine.git"),
        ("Accept: text/x", "Accept: text/x"),
        ("no UTF-8 \udcff", "no UTF-8 ?"),
    ],
)
def test_a_text_is_masked(text, masked):
    assert mask_text(text) == masked


def test_requirements_are_stored_without_credentials():
    spec = EnvironmentSpec(requirements=["mine @ https://user:SECRET@host.test/mine.whl"])
    plan = a_run().experiment.model_copy(update={"environments": {"e": spec}})
    assert plan.masked().environments["e"].requirements == ["mine @ https://…@host.test/mine.whl"]


@pytest.mark.real
def test_a_run_that_goes_on_gets_its_headers_again(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    header, said = "Authorization: Bearer SECRET", []

    def call(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["clientlab", *words])
        code = run_command_line(words)
        said.append("".join(capfd.readouterr()))
        return code

    fails = [True]
    with counting_server(lambda _: None if fails and len(server.seen) > 1 else ok()) as server:
        words = ("-t", "urllib3", "-n", "2", "--rounds", "1", "--header", header, "--url", server.url)
        assert call("run", *words, "--html", "a.html", "--json") == 3
        server.reset()
        assert call("run", "--resume", "last") == 2
        assert "add --header 'Authorization: VALUE'" in said[-1]
        assert call("run", "--resume", "last", "--header", header, "--header", "X-Other: x") == 2
        assert server.seen == []
        fails.clear()
        assert call("run", "--resume", "last", "--header", header) == 0
    assert {one.headers["authorization"] for one in server.seen} == {"Bearer SECRET"}
    run = Store(Path("results")).read("last")
    assert next(iter(run.experiment.workloads.values())).headers == {"Authorization": "…"}
    assert "--header 'Authorization: …'" in run.experiment.command
    texts = [*said, *(path.read_text() for path in tmp_path.rglob("*") if path.suffix in {".json", ".jsonl", ".html"})]
    assert not [text for text in texts if "SECRET" in text]
