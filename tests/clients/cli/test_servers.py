"""The user's own servers in one run: measured in turn, compared like environments, and
resumed.
"""

from __future__ import annotations

from collections import Counter

import pytest

from clientlab.conformance.server import counting_server
from clientlab.workload.values import Link

pytestmark = pytest.mark.real


@pytest.fixture
def servers():
    """Two servers, by name."""
    with counting_server() as base, counting_server() as head:
        yield {"base": base, "head": head}


def options(servers, **paths: str) -> list[str]:
    return [
        word
        for name, one in servers.items()
        for word in ("--url", f"{name}={one.url}{paths.get(name, '')}")
    ]


def targets(servers) -> list[set[str]]:
    return [{seen.target for seen in one.seen} for one in servers.values()]


def test_two_servers_are_compared_in_one_run_which_can_be_resumed(
    servers, clientlab, results
):
    words = (
        "run",
        "-v",
        "-t",
        "urllib3",
        "-n",
        4,
        "--rounds",
        3,
        "--fail-on",
        "errors +0",
    )
    said = clientlab(*words, *options(servers, base="/v1?a=b", head="/v2"))
    assert said.code == 0, said.err
    assert "urllib3 at head takes " in " ".join(said.out.split())
    plan = (run := results.read("last")).experiment
    assert plan.question == "Is head slower than base?"
    assert {
        arm.name: (arm.server, plan.workloads[arm.workload].request.path)
        for arm in plan.arms
    } == {
        "urllib3 at base": ("base", "/v1?a=b"),
        "urllib3 at head": ("head", "/v2"),
    }
    assert targets(servers) == [{"/v1?a=b"}, {"/v2"}]
    results.save(run.updated(status="incomplete", trials=run.trials[:5]))
    assert clientlab("run", "--resume", "last").code == 0
    assert Counter(trial.planned.server for trial in results.read("last").trials) == {
        "base": 3,
        "head": 3,
    }


def test_servers_behind_a_link_are_called_by_their_own_names(
    servers, clientlab, results
):
    assert (
        clientlab(
            "run",
            "-t",
            "urllib3",
            "-n",
            2,
            "--rounds",
            1,
            "--rtt",
            "1ms",
            *options(servers),
        ).code
        == 0
    )
    for one in servers.values():
        assert {seen.headers["host"] for seen in one.seen} == {f"127.0.0.1:{one.port}"}
    assert [trial.planned.link for trial in results.read("last").trials] == [
        Link(0.001)
    ] * 2


def test_a_file_names_servers_which_the_command_line_replaces(
    servers, clientlab, results, tmp_path
):
    """A URL without a path keeps the path of the workload."""
    lines = [
        'question = "?"',
        'strategies = ["http.client"]',
        "rounds = 1",
        "[servers]",
    ]
    lines += [f'{name} = "{one.url}"' for name, one in servers.items()]
    text = "\n".join([*lines, "[workloads.w]", "requests = 2", 'path = "/mine"'])
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    assert clientlab("run", "mine.toml").code == 0
    assert results.read("last").experiment.changed == []
    assert targets(servers) == [{"/mine"}, {"/mine"}]
    assert (
        clientlab("run", "mine.toml", "--url", f"old={servers['base'].url}/x").code == 0
    )
    assert [(arm.name, arm.server) for arm in results.read("last").experiment.arms] == [
        ("http.client", "old")
    ]
    assert targets(servers) == [{"/mine", "/x"}, {"/mine"}]
    (tmp_path / "mine.toml").write_text(
        text.replace(servers["head"].url, "http://127.0.0.1:1"), encoding="utf-8"
    )
    said = clientlab("run", "mine.toml")
    assert said.code == 2
    assert said.err.startswith("clientlab: mine.toml: servers.head.url: ")
