"""Options of `clientlab run`: how the command line and the environment become one typed value."""

from __future__ import annotations

from pathlib import Path

import pytest

from clientlab.cli.run import given_of, new_run, run
from clientlab.workload.arrivals import Stages


@pytest.fixture
def parse(monkeypatch):
    """A function from the arguments of a command line to the options."""
    monkeypatch.delenv("CLIENTLAB_CLUSTER", raising=False)
    return lambda *arguments: given_of(run.make_context("run", list(arguments)).params)


def test_values_have_the_types_of_their_fields(parse, tmp_path):
    (tmp_path / "body.json").write_text('{"a": 1}')
    options = parse(
        "demo", "-t", "aiohttp", "-t", "urllib3", "-n", "5", "-d", "150ms", "--until-precision", "3%", "--quick",
        "--route", "proxy", "--method", "post", "--header", "X-A: 1", "--header", "X-B:2", "--timeout", "2",
        "--ca-file", "ca.pem", "--json", "--body", f"@{tmp_path / 'body.json'}",
    )  # fmt: skip
    assert options == {
        "experiment": "demo",
        "strategies": ("aiohttp", "urllib3"),
        "requests": 5,
        "duration": 0.15,
        "precision": 0.03,
        "quick": True,
        "routes": ("proxy",),
        "method": "POST",
        "headers": {"X-A": "1", "X-B": "2"},
        "timeout": 2.0,
        "ca_file": Path("ca.pem"),
        "as_json": True,
        "body": '{"a": 1}',
        "folder": Path("results"),
    }


def test_the_fields_of_the_workload_are_those_that_were_given(parse):
    """0 is a value; an option that was not given leaves the experiment's value."""
    options = parse("-n", "0", "--seed", "0", "--rounds", "4", "--rate", "5/s")
    overrides = new_run(options, None).overrides
    assert (overrides.workload, overrides.seed) == ({"requests": 0, "rate": 5.0}, 0)
    assert new_run(parse("--rate", "0s:5/s,1s:9/s"), None).overrides.workload == {
        "stages": Stages.parse("0s:5/s,1s:9/s")
    }
