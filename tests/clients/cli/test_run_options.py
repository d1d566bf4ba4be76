"""Options of `clientlab run`: how the command line and the environment become one typed value."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from clientlab.cli.option_fields import takes
from clientlab.cli.run_options import RunOptions
from clientlab.workload.arrivals import Stages


@pytest.fixture
def parse(monkeypatch):
    """A function from the arguments of a command line to the options."""
    monkeypatch.delenv("CLIENTLAB_TESTBED", raising=False)
    found = []

    @click.command()
    @takes(RunOptions)
    def command(options: RunOptions) -> int:
        found.append(options)
        return 0

    def call(*arguments: str) -> RunOptions:
        command.main(list(arguments), standalone_mode=False)
        return found[-1]

    call.command = command
    return call


def test_values_have_the_types_of_their_fields(parse):
    """Lengths of time are seconds, shares are between 0 and 1, headers are a mapping."""
    options = parse(
        "demo", "-t", "aiohttp", "-t", "urllib3", "-n", "5", "-d", "150ms", "--until-precision", "3%", "--quick",
        "--route", "proxy", "--method", "post", "--header", "X-A: 1", "--header", "X-B:2", "--timeout", "2",
        "--ca-file", "ca.pem", "--json",
    )  # fmt: skip
    assert options == RunOptions(
        experiment="demo",
        strategies=("aiohttp", "urllib3"),
        requests=5,
        duration=0.15,
        precision=0.03,
        quick=True,
        routes=("proxy",),
        method="POST",
        headers={"X-A": "1", "X-B": "2"},
        timeout=2.0,
        ca_file=Path("ca.pem"),
        as_json=True,
    )


def test_the_fields_of_the_workload_are_those_that_were_given(parse):
    """0 is a value; an option that was not given leaves the experiment's value."""
    options = parse("-n", "0", "--seed", "0", "--rounds", "4", "--rate", "5/s")
    assert options.workload_fields() == {"requests": 0, "rate": 5.0}
    assert options.has("seed")
    assert parse("--rate", "0s:5/s,1s:9/s").workload_fields() == {"stages": Stages.parse("0s:5/s,1s:9/s")}


def test_a_body_is_text_or_a_file(parse, tmp_path):
    """`@FILE` is read when the options are parsed."""
    (tmp_path / "body.json").write_text('{"a": 1}')
    assert parse("--body", "a@b").body == "a@b"
    assert parse("--body", f"@{tmp_path / 'body.json'}").body == '{"a": 1}'
