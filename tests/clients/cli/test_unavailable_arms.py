"""Bundled experiments on a machine that lacks a library or a program: what is left out, and where a reader finds it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from clientlab.errors import FieldError
from clientlab.experiments import checks
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.file import bundled
from clientlab.experiments.planning import make_plan
from clientlab.strategies import availability
from clientlab.workload.workload import Workload
from clients.plans import checked_plan


@pytest.fixture
def without(monkeypatch):
    """Take libraries and programs from the machine, as the lab sees it."""

    def call(*names: str) -> None:
        monkeypatch.setattr(availability, "find_spec", lambda name: None if name in names else find_spec(name))
        monkeypatch.setattr(availability, "which", lambda name: None if name in names else f"/usr/bin/{name}")

    return call


@pytest.mark.real
def test_a_bundled_experiment_measures_the_arms_that_the_machine_can_run(clientlab, results, without, server, tmp_path):
    """The others are named in one line, in the run file and in its reports."""
    without("httpx")
    words = ("keepalive", "--quick", "--rounds", 1, "-n", 2, "--url", server.url)
    said = clientlab("run", *words, "--junit", "junit.xml")
    missing = ["httpx-client", "httpx-client-behind-link"]
    assert (said.code, all(name in said.err.splitlines()[0] for name in missing)) == (0, True)
    run = results.read("last")
    assert (run.status, list(run.experiment.unavailable_arms)) == ("done", missing)
    measured = {"per-request", "session", "per-request-behind-link", "session-behind-link"}
    assert {trial.arm for trial in run.trials} == {arm.name for arm in run.experiment.arms} == measured
    about_httpx = {claim.verdict for claim in run.claims if "httpx-client" in claim.measured}
    assert about_httpx == {"inconclusive"}
    assert (tmp_path / "junit.xml").read_text(encoding="utf-8").count("<skipped") >= 2


def test_where_the_machine_can_run_no_arm_the_run_is_refused_in_one_line(clientlab, without, tmp_path):
    without("requests", "httpx")
    said = clientlab("run", "keepalive")
    assert (said.code, said.out) == (2, "")
    assert said.err.count("\n") == 1
    assert all(name in said.err for name in ("'keepalive'", "requests", "httpx"))
    assert not (tmp_path / "results").exists()


def test_an_arm_that_needs_more_open_files_than_the_hard_limit_is_left_out_of_a_bundled_experiment(monkeypatch):
    monkeypatch.setattr(checks.resource, "getrlimit", lambda _: (1024, 8000))
    plan = checked_plan(bundled()["httpx2"])
    assert {name.rpartition("=")[2] for name in plan.unavailable_arms} == {"16000]"}
    table = WorkloadTable(first=Workload(requests=9000, concurrency=7937))
    experiment = Experiment(name="x", question="?", strategies=["aiohttp@workers"], workloads={"w": table})
    with pytest.raises(FieldError, match=r"8,001 open files are needed, and the hard limit is 8,000"):
        checks.check_plan(make_plan(experiment), experiment)


def test_a_strategy_that_the_user_names_is_refused(clientlab, without, tmp_path):
    without("ab")
    text = bundled()["frameworks"].read_text(encoding="utf-8").replace("instead =", "# instead =")
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    for words in (("run", "-t", "ab"), ("run", "demo", "-t", "ab", "-t", "requests"), ("run", "mine.toml")):
        said = clientlab(*words)
        assert (said.code, said.err.count("\n"), "strategy 'ab'" in said.err) == (2, 1, True), said.err
    assert not (tmp_path / "results").exists()
