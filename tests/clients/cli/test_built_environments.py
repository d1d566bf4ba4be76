"""Environments of an experiment: folders, and those that uv builds from a Python and requirements."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from clientlab.errors import LabError
from clientlab.experiments.expansion import entry_of
from clientlab.experiments.file import read_plan

EXPERIMENT = """
question = "Which?"
strategies = ["http.client"]
[workloads.w]
requests = 3
concurrency = [1, 2, 3]
[arms.pinned]
strategy = "http.client@threads"
environment = "old"
[environments.old]
{}
[environments.new]
folder = "~/new"
"""


def test_an_experiment_has_environments_and_an_arm_may_choose_one(tmp_path):
    """As it may choose an upstream: then its name has no environment."""
    path = tmp_path / "mine.toml"
    path.write_text(EXPERIMENT.format('python = "3.13"\nrequirements = ["httpx==0.27.2"]').replace("[1, 2, 3]", "1"))
    plan = read_plan(path)
    arms = {arm.name: (arm.label, arm.environment) for arm in plan.arms}
    assert arms == {
        "http.client in old": ("http.client in old", "old"),
        "http.client in new": ("http.client in new", "new"),
        "pinned": ("pinned", "old"),
    }
    assert plan.environments["old"].requirements == ["httpx==0.27.2"]
    assert plan.environments["new"].folder == str(Path("~/new").expanduser())
    path.write_text(EXPERIMENT.format('python = "3.13"'))
    swept = read_plan(path).arms
    assert swept[4].name == "http.client[concurrency=2] in new"
    assert swept[4].sweep == "http.client in new"
    assert [entry_of(arm) for arm in swept] == ["http.client"] * 6 + ["pinned"] * 3


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("", "environments.old"),
        ('folder = "x"\npython = "3.13"', "environments.old"),
        ('folder = "x"\n[arms.other]\nstrategy = "urllib3"\nenvironment = "odl"', "arms.other.environment"),
    ],
)
def test_an_environment_of_an_experiment_that_has_no_meaning_is_refused(table, name, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(EXPERIMENT.format(table))
    with pytest.raises(LabError, match=re.escape(name)):
        read_plan(path)


@pytest.mark.real
def test_an_environment_that_cannot_be_built_is_refused_in_a_line(clientlab, server, monkeypatch, tmp_path):
    """Exit code 2, and the next run does not take what was left of it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    code = "no-such-library-of-the-lab==9"
    Path("mine.toml").write_text(EXPERIMENT.format(f'requirements = ["{code}"]').replace("[1, 2, 3]", "2"))
    for _ in range(2):
        said = clientlab("run", "mine.toml", "--url", server.url)
        assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
        assert said.err.startswith("clientlab: environment 'old': ")
    assert not Path("results").exists()


@pytest.mark.real
def test_an_environment_is_built_once_and_measured(clientlab, server, results, monkeypatch, tmp_path):
    """Without requirements, it has the standard library. The run file does not have the name of the user."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    text = EXPERIMENT.format(f'python = "{python}"')
    Path("mine.toml").write_text(text.replace('[environments.new]\nfolder = "~/new"', "").replace("[1, 2, 3]", "2"))
    for _ in range(2):
        said = clientlab("run", "mine.toml", "--rounds", 1, "--url", server.url)
        assert said.code == 0, said.err
        held = results.read("last").surroundings.environments["old"]
        assert held.packages == {}
        (made,) = (tmp_path / "cache" / "clientlab" / "environments").glob("*/clientlab-complete")
        assert held.folder == f"~/{made.parent.relative_to(tmp_path)}"
        assert all(str(tmp_path) not in path.read_text() for path in Path("results").glob("*/run.json"))
