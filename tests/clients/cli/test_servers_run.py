"""Servers driven by ApacheBench from the command line: started in turn, counted by both sides, and put in a table."""

from __future__ import annotations

import psutil
import pytest

from clients.test_apache_bench import needs_ab

EXPERIMENT = """
question = "How far is aiohttp ahead?"
strategies = ["ab", "ab?keepalive=false"]
upstreams = ["aiohttp?server=development", "flask?server=development"]
rounds = 1
[workloads.planets]
path = "/planets/mars"
requests = 150
concurrency = 5
"""


@needs_ab
def test_both_development_servers_are_driven_and_compared(clientlab, results, tmp_path):
    """The driver's connections are the upstream's; Flask's closes each; what `ab` does not know is left out."""
    before = psutil.Process().children(recursive=True)
    (tmp_path / "mine.toml").write_text(EXPERIMENT, encoding="utf-8")
    said = clientlab("run", "mine.toml", "--keep-samples")
    assert (said.code, psutil.Process().children(recursive=True)) == (0, before)
    run = results.read("last")
    assert len(run.trials) == 4
    for trial in run.trials:
        assert (trial.status, trial.requests, trial.errors, trial.driver) == ("done", 150, {}, "ab")
        keeps = (trial.strategy, trial.upstream) == ("ab", "aiohttp?server=development")
        assert trial.kept_alive == (150 if keeps else 0)
        assert trial.connections_opened == trial.upstream_use.connections == (5 if keeps else 150)
        assert 150 <= trial.upstream_use.requests < 155  # with kept connections, some may be begun in vain
        assert trial.wall_seconds > 0
        assert trial.cpu_seconds > 0
        assert (trial.peak_rss_bytes, trial.peak_pss_bytes, trial.over_time) == (None, None, [])
        assert trial.latency_seconds.p50 <= trial.latency_seconds.p99 <= trial.latency_seconds.max
    assert run.surroundings.programs["ab"].startswith("This is ApacheBench, Version")
    assert set(run.surroundings.programs) == {"ab", "aiohttp?server=development", "flask?server=development"}
    assert "Requests per second, by server" in said.out
    assert not list(tmp_path.glob("results/*/samples*/*"))  # there are no samples, only a distribution


@pytest.mark.slow
def test_where_it_is_missing_another_drives_and_the_run_says_so(clientlab, results, tmp_path, monkeypatch):
    """With the same table, its kept connections counted by the client."""
    monkeypatch.setattr("clientlab.strategies.availability.which", lambda _: None)
    text = EXPERIMENT.replace(
        "rounds", 'instead = { ab = "pycurl@multi", "ab?keepalive=false" = "pycurl@threads" }\nrounds'
    )
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    said = clientlab("run", "-v", "mine.toml", "-n", 40)
    assert said.code == 0
    run = results.read("last")
    assert {trial.strategy for trial in run.trials} == {"pycurl@multi", "pycurl@threads"}
    assert {caution.kind for caution in run.cautions} >= {"replaced-strategy"}
    assert "ab is not installed: pycurl@multi replaced it" in " ".join(said.out.split())
    assert "Requests per second, by server" in said.out
