"""`--rtt` and `--bandwidth`: a run behind links, and what is refused in a line before anything is measured."""

from __future__ import annotations

import pytest

from clientlab.workload.link import Link


@pytest.mark.real
def test_a_run_behind_two_links_has_an_arm_for_each_and_compares_them(clientlab, results, server):
    """The user's own server; each arm has its link in the run file."""
    words = ("-t", "http.client", "-n", 5, "--rounds", 1, "--rtt", "0ms,10ms", "--url", server.url)
    said = clientlab("run", *words)
    assert said.code == 0, said.err
    run = results.read("last")
    near, far = run.experiment.arms
    assert [(arm.name, arm.link) for arm in (near, far)] == [
        ("http.client[rtt=0ms]", Link(0.0)),
        ("http.client[rtt=10ms]", Link(0.01)),
    ]
    assert run.experiment.workloads[near.workload].headers == {"Host": f"127.0.0.1:{server.port}"}
    (found,) = [trial for trial in run.trials if trial.link == far.link]
    assert found.latency_seconds.p50 > 0.01
    assert found.overhead_seconds.p50 < found.latency_seconds.p50 - 0.009


WITH_CONTROL = """
question = "?"
[workloads.w]
requests = 5
[arms.one]
strategy = "urllib3"
[arms.two]
strategy = "http.client"
[arms.far]
strategy = "urllib3"
control = true
rtt = "50ms"
[claims.near]
text = "!"
kind = "less"
a = "one"
b = "two"
[claims.far]
text = "!"
kind = "less"
a = "one"
b = "far"
"""


@pytest.mark.real
def test_control_arms_behind_their_own_link_are_left_out_of_a_run_behind_another(clientlab, results, tmp_path, server):
    """The run names them; the claim about the other arms stays."""
    (tmp_path / "mine.toml").write_text(WITH_CONTROL)
    said = clientlab("run", "mine.toml", "--rtt", "1ms", "--rounds", 1, "--url", server.url)
    assert said.code == 0, said.err
    plan = results.read("last").experiment
    assert [(arm.name, arm.link) for arm in plan.arms] == [("one", Link(0.001)), ("two", Link(0.001))]
    assert [claim.name for claim in plan.claims] == ["near"]
    assert "without the arms behind a link: far" in plan.changed
