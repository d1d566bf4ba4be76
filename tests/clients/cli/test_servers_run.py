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
requests = 40
concurrency = 5
"""


@pytest.mark.real
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
        assert (trial.status, trial.requests, trial.errors, trial.driver) == ("done", 40, {}, "ab")
        keeps = (trial.strategy, trial.upstream) == ("ab", "aiohttp?server=development")
        assert trial.kept_alive == (40 if keeps else 0)
        assert trial.connections_opened == trial.upstream_use.connections == (5 if keeps else 40)
        assert 40 <= trial.upstream_use.requests < 46  # with kept connections, some may be begun in vain
        assert trial.wall_seconds > 0
        assert trial.cpu_seconds > 0
        assert (trial.peak_rss_bytes, trial.peak_pss_bytes, trial.over_time) == (None, None, [])
        assert trial.latency_seconds.p50 <= trial.latency_seconds.p99 <= trial.latency_seconds.max
    assert set(run.surroundings.programs) == {"ab", "aiohttp?server=development", "flask?server=development"}
    assert not list(tmp_path.glob("results/*/samples*/*"))  # there are no samples, only a distribution
