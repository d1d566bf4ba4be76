"""Bundled experiments on a machine that lacks a library or a program: what is left out, and where a reader finds it."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

from clientlab.experiments.file import bundled
from clientlab.strategies import availability

HTTPX = "httpx is not installed; pip install 'clientlab[all]'"
AB = "ab is not installed; apt-get install apache2-utils"


@pytest.fixture
def without(monkeypatch):
    """Take libraries and programs from the machine, as the lab sees it."""

    def call(*names: str) -> None:
        monkeypatch.setattr(availability, "find_spec", lambda name: None if name in names else find_spec(name))
        monkeypatch.setattr(availability, "which", lambda name: None if name in names else f"/usr/bin/{name}")

    return call


@pytest.mark.slow
def test_a_bundled_experiment_measures_the_arms_that_the_machine_can_run(clientlab, results, without, tmp_path):
    """The others are named in one line, in the run file and in its reports; a resumed run has the arms of its plan."""
    without("httpx")
    said = clientlab("run", "-v", "keepalive", "--quick", "--rounds", 1, "-n", 5, "--junit", "junit.xml")
    missing = ["httpx-client", "httpx-client-behind-link"]
    line = f"clientlab: left out: {', '.join(missing)} ({HTTPX})"
    assert (said.code, said.err.splitlines()[0], said.err.count("left out")) == (0, line, 1)
    run = results.read("last")
    assert (run.status, run.experiment.unavailable_arms) == ("done", dict.fromkeys(missing, HTTPX))
    measured = {"per-request", "session", "per-request-behind-link", "session-behind-link"}
    assert {trial.arm for trial in run.trials} == {arm.name for arm in run.experiment.arms} == measured
    assert f"not measured: httpx-client, httpx-client-behind-link ({HTTPX})" in " ".join(said.out.split())
    about_httpx = {claim.name: claim for claim in run.claims if "httpx-client" in claim.measured}
    assert about_httpx
    assert {claim.verdict for claim in about_httpx.values()} == {"inconclusive"}
    assert all(HTTPX in claim.measured for claim in about_httpx.values())
    junit = (tmp_path / "junit.xml").read_text(encoding="utf-8")
    for name in missing:
        assert re.search(f"""<testcase name="{name}" [^>]+>\\s+<skipped message="{re.escape(HTTPX)}">""", junit)

    results.save(run.model_copy(update={"status": "incomplete", "trials": run.trials[:3], "claims": []}))
    without()  # httpx is installed again
    said = clientlab("run", "--resume", "last")
    assert said.code == 0, said.err
    whole = results.read("last")
    assert whole.experiment == run.experiment
    assert [trial.arm for trial in whole.trials] == [trial.arm for trial in run.trials]


def test_where_the_machine_can_run_no_arm_the_run_is_refused_in_one_line(clientlab, without, tmp_path):
    """Each missing thing is named once, and nothing is written."""
    without("requests", "httpx")
    said = clientlab("run", "keepalive")
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        "clientlab: experiment 'keepalive': this machine can run none of its arms: "
        f"requests is not installed; pip install 'clientlab[all]', {HTTPX}\n"
    )
    assert not (tmp_path / "results").exists()


def test_a_strategy_that_the_user_names_is_refused(clientlab, without, tmp_path):
    """With -t, also of a bundled experiment, and in a file of the user's own."""
    without("ab")
    text = bundled()["frameworks-servers"].read_text(encoding="utf-8").replace("instead =", "# instead =")
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    lines = {
        ("run", "-t", "ab"): f"-t: strategy 'ab' is unavailable: {AB}",
        ("run", "demo", "-t", "ab", "-t", "requests"): f"-t: strategy 'ab' is unavailable: {AB}",
        ("run", "mine.toml"): f"arms.aiohttp-development: strategy 'ab' is unavailable: {AB}",
    }
    for words, line in lines.items():
        said = clientlab(*words)
        assert (said.code, said.err.count("\n"), line in said.err) == (2, 1, True), said.err
    assert not (tmp_path / "results").exists()
