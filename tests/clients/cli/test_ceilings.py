"""`clientlab run --ceilings`: the real upstream, by a load generator where there is one and by a strategy."""

from __future__ import annotations

import shutil

import pytest

from clientlab.generators.programs import FAST

EXPERIMENT = """
question = "How near is urllib3 to what the upstream can do?"
strategies = ["urllib3@threads"]
rounds = 1
ceilings = true
[common]
requests = 200
[workloads.same]
delay = "1ms"
[workloads.numbered]
path = "/todos/{k}"
"""


@pytest.mark.slow
def test_ceilings_are_measured_before_the_first_round_and_kept(clientlab, results, tmp_path):
    """The workload whose requests differ needs a strategy; the other one is for the generator that is installed."""
    (tmp_path / "mine.toml").write_text(EXPERIMENT, encoding="utf-8")
    said = clientlab("run", "mine.toml")
    assert said.code == 0
    run = results.read("last")
    same, numbered = run.ceilings
    assert (same.without_delay, numbered.without_delay) == (True, False)
    assert numbered.generator in {"pycurl@multi", "aiohttp@workers", "http.client@threads"}
    installed = [one.name for one in FAST if shutil.which(one.name)]
    assert same.generator == (installed or [numbered.generator])[0]
    for ceiling, trial in zip(
        (same, numbered), sorted(run.trials, key=lambda one: one.workload, reverse=True), strict=True
    ):
        assert ceiling.arms == [trial.arm]
        assert ceiling.reason is None
        assert ceiling.requests_per_second == pytest.approx(ceiling.requests / ceiling.seconds)
        assert 1.5 < ceiling.seconds < 5
        assert ceiling.upstream_use.requests >= ceiling.requests
        assert trial.busy["ceiling"] == pytest.approx(trial.requests_per_second / ceiling.requests_per_second)
        assert 0 < trial.busy["ceiling"] < 2
    assert "ceiling of aiohttp, direct: 2 s with 32 connections" in said.err
    for shown in (said.out, clientlab("report", "last").out):  # the terminal's width decides where lines break
        assert " ".join(shown.split()).count("came closest, with") == 2
