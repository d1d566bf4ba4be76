"""The other verbs: report, list, doctor, up, and the command as a program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from clientlab import __version__
from clientlab.errors import LabError
from clientlab.experiments.file import bundled
from clientlab.results.figures import FIGURES
from clientlab.strategies import CLIENTS, STRATEGIES
from clients.documents import a_run, a_trial

RUN = a_run(*(a_trial(name, number) for name in ("urllib3", "pycurl") for number in (1, 2, 3)))


@pytest.fixture
def run_file(results, clientlab):  # noqa: ARG001 - which changes into the test's folder
    results.claim(RUN.run)
    results.save(RUN)
    return results.find(RUN.run)


@pytest.mark.parametrize("asked", ["last", f"results/{RUN.run}/run.json"])
def test_a_report_is_made_of_a_run_by_any_of_its_names(asked, clientlab, run_file):
    before = run_file.read_bytes()
    said = clientlab("report", asked)
    assert (said.code, said.err) == (0, "")
    assert all(words in said.out for words in ("Which is fastest?", RUN.run, "urllib3", "pycurl"))
    assert len(clientlab("report", asked, "--all").out) > len(said.out)
    assert run_file.read_bytes() == before


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ((), STRATEGIES),
        (("clients",), CLIENTS),
        (("experiments",), bundled()),
        (("figures",), [figure.key for figure in FIGURES]),
    ],
)
def test_lists_hold_all_there_is(what, names, clientlab):
    table = clientlab("list", *what)
    assert (table.code, [name for name in names if name not in table.out]) == (0, [])
    document = json.loads(clientlab("list", *what, "--json").out)
    assert [row["name"] for row in document] == list(names)
    assert all(len(row) > 2 for row in document)


def test_the_list_tells_what_is_missing_for_a_strategy(clientlab, monkeypatch):
    """On this machine, beside what is wrong with it: the table of the documentation leaves that out."""
    table = clientlab("list", "--markdown").out
    monkeypatch.setitem(sys.modules, "httpx", None)
    rows = {row["name"]: row["note"] for row in json.loads(clientlab("list", "--json").out)}
    assert "httpx is not installed" in rows["httpx-async"]
    assert rows["aiohttp"] == ""
    assert clientlab("list", "--markdown").out == table
    said = clientlab("run", "-t", "httpx-async")
    assert (said.code, "'httpx-async'" in said.err) == (2, True)


def test_the_doctor_says_what_is_missing_and_how_to_get_it(clientlab, monkeypatch):
    def missing(name: str):
        raise LabError(f"{name} is missing")

    said = clientlab("doctor")
    assert (said.code, said.err, "MISSING" in said.out) == (0, "", False)
    assert all(name in said.out for name in ("Python", "urllib3", "gunicorn", "Caddy", "open files"))
    monkeypatch.setattr("clientlab.testbeds.local.caddy", lambda: missing("caddy"))
    said = clientlab("doctor")
    (line,) = [line for line in said.out.splitlines() if "Caddy " in line]
    assert (said.code, line.split()[0]) == (0, "no")
    monkeypatch.setattr("clientlab.cli.checks._SERVERS", ("gunicorn", "no-such-server"))
    said = clientlab("doctor")
    (line,) = [line for line in said.out.splitlines() if line.startswith("MISSING")]
    assert said.code == 1
    assert " no-such-server " in line


def test_the_program_tells_its_version_and_its_verbs(clientlab):
    assert clientlab("--version").out == f"clientlab, version {__version__}\n"
    usage = clientlab()
    assert (usage.code, usage.err) == (0, "")
    assert usage.out == clientlab("--help").out == clientlab("-h").out
    for verb in ("run", "report", "list", "up", "doctor"):
        assert f"\n  {verb} " in usage.out
        assert clientlab(verb, "--help").out.startswith(f"Usage: clientlab {verb} ")


@pytest.mark.real
def test_help_imports_neither_numpy_nor_pydantic_nor_rich():
    code = "import sys; from clientlab.cli import run_command_line as r; r(['run', '--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "--strategy" in done.stdout
    assert not {"numpy", "pydantic", "rich.console", "jinja2", "matplotlib"} & set(done.stdout.split())


@pytest.mark.real
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux'")
def test_output_that_cannot_be_written_is_an_error():
    """One line, and no second one at the interpreter's end."""
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "clientlab", "list"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.real
def test_without_its_libraries_the_program_says_what_to_install():
    """The package alone, as an image of upstreams has it."""
    hidden = "import runpy, sys; sys.modules['click'] = None; runpy.run_module('clientlab', run_name='__main__')"
    command = [sys.executable, "-c", hidden, "runs"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "clientlab: click is not installed" in done.stderr
    assert "Traceback" not in done.stderr
