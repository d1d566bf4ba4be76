"""The clients shown in docs/own-client.md and CONTRIBUTING, as they stand there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from textwrap import dedent

import pytest

from clientlab.cli import run_command_line
from clientlab.conformance.server import counting_server
from clientlab.results.store import Store

ROOT = Path(__file__).parents[2]
OWN_CLIENT = (ROOT / "docs" / "own-client.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The page's file in a folder of its own."""
    found = re.search(r"<!-- mine.py -->\n```python\n(.*?)```", OWN_CLIENT, re.DOTALL)
    assert found
    (tmp_path / "mine.py").write_text(found[1])
    monkeypatch.chdir(tmp_path)
    return found[1]


def test_it_is_a_short_one(mine):
    """The example of an own client has at most seventeen lines, imports included."""
    assert sum(bool(line.strip()) for line in mine.splitlines()) <= 17


@pytest.mark.slow
@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize(
    "name", ["mine.py:Mine", pytest.param("mine.py:Mine@threads", marks=pytest.mark.further_client)]
)
def test_it_conforms(name, capfd):
    """`clientlab conform` finds nothing broken in the example."""
    assert run_command_line(["conform", name]) == 0, capfd.readouterr().out
    assert capfd.readouterr().out.startswith(f"{name}: does the work right: yes, passes all ")


@pytest.mark.slow
@pytest.mark.further_client
def test_the_whole_of_a_client_that_contributors_are_shown_conforms(tmp_path, capfd):
    """CONTRIBUTING's needs nothing that is not there either."""
    found = re.search(r"The whole of a client:\n\n   ```python\n(.*?)   ```", CONTRIBUTING, re.DOTALL)
    assert found
    (tmp_path / "whole.py").write_text(dedent(found[1]))
    assert run_command_line(["conform", f"{tmp_path}/whole.py:Urllib3Pool"]) == 0, capfd.readouterr().out


def test_the_function_of_the_page_is_measured(tmp_path, monkeypatch):
    """As its command names it, beside the listed strategy."""
    found = re.search(r"<!-- fetch.py -->\n```python\n(.*?)```", OWN_CLIENT, re.DOTALL)
    assert found
    (tmp_path / "fetch.py").write_text(found[1])
    monkeypatch.chdir(tmp_path)
    words = shlex.split(re.search(r"^clientlab (run -t fetch.py.*)$", OWN_CLIENT, re.MULTILINE)[1])
    with counting_server() as server:
        assert run_command_line([*words, "-n", "40", "--rounds", "1", "--url", server.url]) == 0
    trials = Store(Path("results")).read("last").trials
    assert {trial.strategy: (trial.requests, trial.errors, trial.concurrency) for trial in trials} == {
        "fetch.py:fetch@threads": (40, {}, 16), "requests-session@threads": (40, {}, 16),
    }  # fmt: skip


@pytest.mark.usefixtures("mine")
def test_it_is_measured_beside_a_listed_one():
    """With its settings, and with a hash of its file in the run."""
    names = ["mine.py:Mine", "mine.py:Mine@threads?block=false", "urllib3"]
    asked = [word for name in names for word in ("-t", name)]
    with counting_server() as server:
        assert run_command_line(["run", *asked, "-n", "20", "-c", "3", "--rounds", "1", "--url", server.url]) == 0
    run = Store(Path("results")).read("last")
    assert {trial.strategy: (trial.requests, trial.errors) for trial in run.trials} == dict.fromkeys(names, (20, {}))
    assert run.surroundings.libraries[str(Path("mine.py").resolve())].startswith("sha256:")
