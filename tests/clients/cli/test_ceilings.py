"""`clientlab run --ceilings`: the real upstream, by a load generator where there is one and by a strategy."""

from __future__ import annotations

import pytest

EXPERIMENT = """
question = "How near is urllib3 to what the upstream can do?"
strategies = ["urllib3@threads"]
rounds = 1
ceilings = true
[common]
requests = 200
[workloads.same]
delay = "1ms"
"""


@pytest.mark.real
@pytest.mark.release
def test_ceilings_are_measured_before_the_first_round_and_kept(clientlab, results, tmp_path):
    """Each trial has its share of the ceiling."""
    (tmp_path / "mine.toml").write_text(EXPERIMENT, encoding="utf-8")
    said = clientlab("run", "mine.toml")
    assert said.code == 0
    run = results.read("last")
    (ceiling,), (trial,) = run.ceilings, run.trials
    assert (ceiling.without_delay, ceiling.reason) == (True, None)
    assert ceiling.requests_per_second > 0
    assert ceiling.upstream_use.requests >= ceiling.requests
    assert trial.busy["ceiling"] > 0
