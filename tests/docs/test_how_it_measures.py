"""docs/how-it-measures.md lists the hops from `clientlab run` to the first sample: a traced run has the same ones."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-it-measures.md"
TRACER = Path(__file__).parent / "hop_tracer"
MOST_HOPS, MOST_TYPES = 24, 12
COMMAND = ("run", "-t", "requests-session", "-n", "1", "--rounds", "1", "--warmup", "0")
PROCESSES = ("clientlab", "clientlab.measuring.trial_process")
SERVICES = {
    "TrialRunner",
    "CallerFactory",
    "Surroundings",
    "Servers",
    "RunSettings",
    "_Parts",
    "_Queue",
    "Callbacks",
    "TrialLimits",
}
"""Objects that act on the description of a request, that hold callbacks or limits, or that describe the machine or what
the lab may do.
"""


def listed(column: str) -> list[str]:
    """Names in the first column, after a number, of the section's tables whose first heading is `column`."""
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition("## From `clientlab run` to the first sample\n")[2].partition("\n## ")[0]
    tables = re.findall(rf"^\| (?:\| )?{column} \|.*\n\|[ -|]+\n((?:\|.*\n)+)", section, re.MULTILINE)
    return [name for table in tables for name in re.findall(r"^\| (?:\d+ \| )?`([^`]+)`", table, re.MULTILINE)]


@pytest.fixture(scope="module")
def traces(tmp_path_factory) -> list[dict]:
    """What the tracer wrote in the lab's process and in the trial's."""
    folder = tmp_path_factory.mktemp("trace")
    environment = {**os.environ, "PYTHONPATH": str(TRACER), "TRACE_FOLDER": str(folder)}
    command = [sys.executable, "-m", "clientlab", *COMMAND, "--out", str(folder / "results")]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=100)
    return [json.loads((folder / f"{name}.json").read_text()) for name in PROCESSES]


def stacks_of(trace: dict) -> list[list[str]]:
    """The call stacks at the three moments, from the subcommand on."""
    return [[name for name in stack if name != "cli.run_command_line"] for stack in trace["stacks"].values()]


def hops_of(trace: dict, types: set[str]) -> set[str]:
    """The hops of one process, by the definition that the page gives."""
    on_the_way = {name for stack in stacks_of(trace) for name in stack} | set(trace["takers"][:1])
    return on_the_way | {maker for maker, caller, made in trace["makers"] if caller in on_the_way and types & set(made)}


def test_the_hops_are_those_of_a_traced_run(traces):
    """And no more than the limit. Those of one stack are in its order."""
    types, hops = set(listed("data type")), listed("hop")
    assert set(hops) == {hop for trace in traces for hop in hops_of(trace, types)}
    assert len(hops) == len(set(hops)) <= MOST_HOPS
    for stack in (stack for trace in traces for stack in stacks_of(trace)):
        assert [hop for hop in hops if hop in stack] == stack


def test_the_data_types_are_those_that_the_hops_get_and_return(traces):
    """And no more than the limit."""
    types = set(listed("data type"))
    found = {kind for trace in traces for hop in hops_of(trace, types) for kind in trace["types"].get(hop, [])}
    assert found - SERVICES == types
    assert len(types) <= MOST_TYPES
