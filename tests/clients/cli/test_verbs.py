"""`clientlab list`, `init` and `doctor`, the command as a program, and what a shell
completes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from clientlab import __version__
from clientlab.cli import commands
from clientlab.cli.preparing import template
from clientlab.errors import LabError
from clientlab.experiments.file import bundled
from clientlab.judging.cautions import RULES
from clientlab.results.figures import FIGURES
from clientlab.running.schedule import estimate_seconds
from clientlab.strategies import CLIENTS, STRATEGIES
from clients.plans import checked_plan


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ((), STRATEGIES),
        (("clients",), CLIENTS),
        (("experiments",), bundled()),
        (("figures",), [figure.key for figure in FIGURES]),
        (("cautions",), [rule.kind for rule in RULES]),
    ],
)
def test_a_list_contains_every_item(what, names, clientlab):
    table = clientlab("list", *what)
    assert table.code == 0
    assert [name for name in names if name not in table.out] == []
    document = json.loads(clientlab("list", *what, "--json").out)
    assert [row["name"] for row in document] == list(names)
    for row in document:
        assert len(row) > 2


def test_the_list_tells_what_is_missing_for_a_strategy(clientlab, monkeypatch):
    """The table for the documentation does not depend on this machine."""
    table = clientlab("list", "--markdown").out
    monkeypatch.setitem(sys.modules, "httpx", None)
    rows = {
        row["name"]: row["note"] for row in json.loads(clientlab("list", "--json").out)
    }
    assert "httpx is not installed" in rows["httpx-async"]
    assert rows["aiohttp"] == ""
    assert clientlab("list", "--markdown").out == table
    said = clientlab("run", "-t", "httpx-async")
    assert said.code == 2
    assert "'httpx-async'" in said.err


def test_the_doctor_says_what_is_missing_and_how_to_get_it(clientlab, monkeypatch):
    def missing(name: str):
        raise LabError(f"{name} is missing")

    said = clientlab("doctor")
    assert said.code == 0
    assert said.err == ""
    assert "MISSING" not in said.out
    for name in ("Python", "urllib3", "gunicorn", "Caddy", "open files"):
        assert name in said.out
    monkeypatch.setattr("clientlab.testbeds.local.caddy", lambda: missing("caddy"))
    said = clientlab("doctor")
    (line,) = [line for line in said.out.splitlines() if "Caddy " in line]
    assert said.code == 0
    assert line.split()[0] == "no"
    monkeypatch.setattr(
        "clientlab.cli.preparing._SERVERS", ("gunicorn", "no-such-server")
    )
    said = clientlab("doctor")
    (line,) = [line for line in said.out.splitlines() if line.startswith("MISSING")]
    assert said.code == 1
    assert " no-such-server " in line


def test_the_program_shows_its_version_and_commands(clientlab):
    assert clientlab("--version").out == f"clientlab, version {__version__}\n"
    usage = clientlab()
    assert usage.code == 0
    assert usage.err == ""
    assert usage.out == clientlab("--help").out == clientlab("-h").out
    for verb in ("run", "report", "list", "up", "doctor"):
        assert f"\n  {verb} " in usage.out
        assert clientlab(verb, "--help").out.startswith(f"Usage: clientlab {verb} ")


@pytest.mark.real
def test_help_imports_neither_numpy_nor_pydantic_nor_rich():
    code = (
        "import sys; from clientlab.cli import run_command_line as r; r(['run',"
        " '--help']); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "--strategy" in done.stdout
    assert not {"numpy", "pydantic", "rich.console", "jinja2", "matplotlib"} & set(
        done.stdout.split()
    )


@pytest.mark.real
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is Linux'")
def test_output_that_cannot_be_written_is_an_error():
    """One line, without a second one when the interpreter ends."""
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "clientlab", "list"]
        done = subprocess.run(
            command,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


@pytest.mark.real
def test_without_its_libraries_the_program_says_what_to_install():
    """The image of the upstreams has the package alone."""
    hidden = (
        "import runpy, sys; sys.modules['click'] = None; runpy.run_module('clientlab',"
        " run_name='__main__')"
    )
    command = [sys.executable, "-c", hidden, "runs"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "clientlab: click is not installed" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_new_experiment_can_be_run_as_it_is(clientlab):
    """In full and in its quick form: about as long as it says, with claims that can be
    settled.
    """
    said = clientlab("init")
    assert said.code == 0
    assert said.err == ""
    file = Path("experiment.toml")
    assert estimate_seconds(checked_plan(file)) < 40
    quick = checked_plan(file, quick=True)
    assert len(quick.claims) == 2
    assert quick.rounds >= 3
    assert clientlab("init", "search.toml").code == 0
    assert Path("search.toml").exists()


def test_each_key_that_the_new_experiment_offers_is_valid(tmp_path):
    keys = re.findall(r"^#(?=[a-z])(.*)$", template(), re.MULTILINE)
    assert len(keys) > 8
    path = tmp_path / "mine.toml"
    for line in keys:
        path.write_text(template().replace(f"\n#{line}\n", f"\n{line}\n"))
        assert path.read_text() != template()
        checked_plan(path)


@pytest.mark.parametrize("name", ["mine.toml", "Mine.toml", "none/mine.toml"])
def test_init_overwrites_no_file_and_refuses_unusable_names(name, clientlab):
    Path("mine.toml").write_text("mine")
    said = clientlab("init", name)
    assert said.code == 2
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith(f"clientlab: {name}")
    assert Path("mine.toml").read_text() == "mine"
    assert [path.name for path in Path().iterdir()] == ["mine.toml"]


@pytest.mark.usefixtures("clientlab")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["ru"], {"run", "runs"}),
        (["run", "sem"], {"semaphore", "sem"}),
        (["run", "-t", "pycurl@"], {"pycurl@multi", "pycurl@threads", "pycurl@"}),
        (["report", ""], {"last", "20240506-070809000-mine-abcd", ""}),
    ],
)
def test_a_shell_completes_subcommands_experiments_strategies_and_runs(
    words, completed, tmp_path
):
    """The item with the word itself stands for files, which the shell adds."""
    (tmp_path / "results" / "20240506-070809000-mine-abcd").mkdir(parents=True)
    (tmp_path / "results" / "20240506-070809000-mine-abcd" / "run.json").touch()
    *before, word = words
    found = ShellComplete(
        commands, {}, "clientlab", "_CLIENTLAB_COMPLETE"
    ).get_completions(before, word)
    assert {item.value for item in found} == completed
