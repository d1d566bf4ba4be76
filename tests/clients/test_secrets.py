"""Secrets of URLs, headers, recorded requests, environments and requirements: no file and no output holds them."""

from __future__ import annotations

import json
import sys
import venv
from pathlib import Path

import pytest
from benchmarks.leaks import HEADERS, PLANTED, misbehaving, places_of_secrets, requests_by_replay, requests_by_url

from clientlab.cli import run_command_line
from clientlab.conformance.server import counting_server, ok
from clientlab.redaction import MARK, without_queries
from clientlab.results.plan import EnvironmentSpec
from clientlab.results.store import Store
from clientlab.results.withheld_plan import withheld_plan
from clients.documents import a_run

pytestmark = pytest.mark.real

TALKATIVE = ("pyqwest", "requests-session")
"""Clients whose errors quote URLs. `scripts/bench leaks` takes all clients, and more faults."""


@pytest.fixture
def called(capfd, monkeypatch, tmp_path):
    """Call the command line in a folder of its own, as the program's: its exit code, and all that it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["clientlab", *map(str, words)])
        code = run_command_line(sys.argv[1:])
        return code, "".join(capfd.readouterr())

    return call


@pytest.fixture
def stored() -> Store:
    """The results folder of the commands called here."""
    return Store(Path("results"))


def everything(called, folder: Path, *words: object) -> list[str]:
    """The places of planted secrets, after a run with these options and all its exports."""
    files = ("--html", "run.html", "--junit", "run.xml", "--keep-samples")
    said = called("run", *words, "-n", 4, "--rounds", 1, *files)[1]
    said += called("report", "last", "--csv", "run.csv", "--markdown", "run.md")[1]
    assert (folder / "run.html").stat().st_size > 10_000, said
    return places_of_secrets(folder, {"output": said})


def test_recorded_requests_of_talkative_clients_leave_no_secret(called, tmp_path):
    """Query, cookie and credentials of a HAR file, and headers of the command line, in error texts of each trial."""
    strategies = [word for name in TALKATIVE for word in ("-t", name)]
    har = tmp_path.with_name(f"{tmp_path.name}-har")
    har.mkdir()
    with misbehaving("closes") as port:
        found = everything(called, tmp_path, *strategies, *requests_by_replay(har, f"http://127.0.0.1:{port}"))
    assert found == []
    run = Store(tmp_path / "results").read("last")
    assert {trial.strategy for trial in run.trials if trial.error_examples or trial.reason} == set(TALKATIVE)


def test_a_url_and_headers_leave_no_secret(called, tmp_path, stored):
    """In the command of the run, in its workload, its reports, and in the folders of its failed trials."""
    with misbehaving("resets") as port:
        assert everything(called, tmp_path, "-t", "urllib3", *requests_by_url(f"http://127.0.0.1:{port}")) == []
    plan = stored.read("last").experiment
    assert next(iter(plan.workloads.values())).headers == dict.fromkeys(HEADERS, MARK)
    assert f"token={MARK}" in plan.command
    assert f"Authorization: {MARK}" in plan.command


def test_a_kept_header_is_in_the_run_file_and_no_other(called, stored):
    """For a header whose name looks like a secret; the name of one that no request has is refused."""
    with counting_server() as server:
        words = ("run", "-t", "urllib3", "-n", 2, "--rounds", 1, *requests_by_url(server.url))
        assert called(*words, "--keep-header", "x-api-key")[0] == 0
        code, said = called(*words, "--keep-header", "X-Other")
    assert code == 2
    assert "X-Other" in said
    headers = next(iter(stored.read("last").experiment.workloads.values())).headers
    assert headers == {"Authorization": MARK, "X-Api-Key": PLANTED["api key"]}


@pytest.mark.parametrize(
    "line",
    [
        {"url": f"ftp://user:{PLANTED['password']}@h/?token={PLANTED['query']}"},
        {"path": f"/search?token={PLANTED['query']} x&q={PLANTED['parameter']}"},
        {"path": "/", "headers": {"Authorization": f"Bearer {PLANTED['bearer']}ü"}},
    ],
)
def test_recorded_requests_that_are_refused_are_not_printed(line, called, tmp_path):
    """One line says what is wrong in which line of the file."""
    (tmp_path / "requests.jsonl").write_text(json.dumps(line), encoding="utf-8")
    code, said = called("run", "-t", "urllib3", "--replay", "requests.jsonl")
    assert code == 2
    assert "requests.jsonl: line 1: " in said
    assert places_of_secrets(tmp_path / "results", {"output": said}) == []


@pytest.mark.parametrize(
    "words",
    [
        ("--header", f"Bearer {PLANTED['bearer']}"),
        ("--url", f"http://user:{PLANTED['password']}@127.0.0.1/?token={PLANTED['query']}"),
        ("--path", f"/?token={PLANTED['query']} x"),
    ],
)
def test_options_that_are_refused_are_printed_without_their_secrets(words, called, tmp_path):
    """In one line."""
    code, said = called("run", "-t", "urllib3", *words)
    assert code == 2
    assert places_of_secrets(tmp_path, {"output": said}) == []


def test_a_run_that_goes_on_gets_its_secrets_again(called, stored):
    """Without them, one line names what to add, and nothing is sent; with them, the requests are as before."""
    down = []

    def answer(_seen):
        return None if down and len(server.seen) > 1 else ok()

    with counting_server(answer) as server:
        url, header = f"{server.url}/?token={PLANTED['query']}", f"Authorization: {HEADERS['Authorization']}"
        down.append("from the second request on")
        assert called("run", "-t", "urllib3", "-n", 2, "--rounds", 1, "--header", header, "--url", url)[0] == 3
        server.reset()
        for given, names in (
            ((), "Authorization"),
            (("--header", header), "--url"),
            (("--header", "X-Other: x"), "X-Other"),
            (("--url", "http://127.0.0.2:1/?token=x"), "--url"),
            (("--url", f"{server.url}/?q=x"), "--url"),
        ):
            code, said = called("run", "--resume", "last", *given)
            assert code == 2
            assert names in said
        assert server.seen == []
        down.clear()
        assert called("run", "--resume", "last", "--header", header, "--url", url)[0] == 0
    assert {(one.headers["authorization"], one.target) for one in server.seen} == {
        (HEADERS["Authorization"], f"/?token={PLANTED['query']}")
    }
    assert places_of_secrets(stored.folder, {}) == []


def test_a_stored_command_line_is_not_carried_out_with_its_marks(called):
    """`…` is never sent: the refusal says that it stands for a value."""
    for words in (("--header", f"Authorization: {MARK}"), ("--path", f"/?token={MARK}")):
        code, said = called("run", "-t", "urllib3", *words)
        assert code == 2
        assert words[0] in said


def test_a_path_with_a_secret_is_no_value_of_an_axis(called, tmp_path):
    """Arms are named by the values of axes, and reports name arms."""
    paths = f'["/", "/?token={PLANTED["query"]}"]'
    (tmp_path / "mine.toml").write_text(f'question = "?"\nstrategies = ["urllib3"]\n[workloads.w]\npath = {paths}\n')
    code, said = called("run", "mine.toml")
    assert code == 2
    assert places_of_secrets(tmp_path / "results", {"output": said}) == []


def test_what_an_environment_was_installed_from_is_stored_without_credentials(called, tmp_path, stored):
    """The URL of a wheel, as installers write it into direct_url.json."""
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    info = packages / "mine-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    place = f"https://user:{PLANTED['password']}@wheels.test/mine.whl?token={PLANTED['query']}"
    (info / "direct_url.json").write_text(json.dumps({"url": place, "archive_info": {}}))
    with counting_server() as server:
        code, said = called(
            "run", "-t", "http.client", "-n", 2, "--rounds", 1, "--env", f"e={folder}", "--url", server.url
        )
    assert code == 0, said
    assert places_of_secrets(stored.folder, {"output": said}) == []
    packages_of_e = stored.read("last").surroundings.environments["e"].packages
    assert packages_of_e == {"mine": f"1 (https://{MARK}@wheels.test/mine.whl?{MARK})"}


def test_requirements_with_credentials_are_stored_and_refused_without_them(called, tmp_path):
    """The run file names such a requirement with `…`."""
    requirement = f"mine @ http://user:{PLANTED['password']}@127.0.0.1:1/mine.whl?token={PLANTED['query']}"
    tables = f'[workloads.w]\n[environments.e]\nrequirements = ["{requirement}"]\n'
    (tmp_path / "mine.toml").write_text(f'question = "?"\nstrategies = ["http.client"]\n{tables}')
    code, refusal = called("run", "mine.toml")
    shown = f"mine @ http://{MARK}@127.0.0.1:1/mine.whl?token={MARK}"
    assert (code, shown in refusal) == (2, True), refusal
    assert places_of_secrets(tmp_path / "results", {"output": refusal}) == []
    run = a_run()
    spec = EnvironmentSpec(requirements=[requirement])
    held = withheld_plan(run.experiment.model_copy(update={"environments": {"e": spec}})).environments["e"]
    assert held.requirements == [shown]


def test_a_text_of_slashes_is_filtered_in_linear_time():
    """A server may answer with a megabyte of them, which took quadratic time; a query behind them is still left out."""
    slashes = "/" * 1_000_000  # in quadratic time, the test would time out
    assert without_queries(f"{slashes} {slashes}?token=SECRET") == f"{slashes} {slashes}?…"
