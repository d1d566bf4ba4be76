"""Phases: what libraries report of a slow server, in a trial that no figure has."""

from __future__ import annotations

import pytest

from clientlab.cli import run_command_line
from clientlab.results.store import Store

REPORT = ("aiohttp", "requests-session", "httpx2-client", "httpx2-async", "pycurl@multi", "curl-cffi")
LATE = 0.01
"""Seconds by which a busy machine may shift a median; scripts/bench has the error on a quiet one."""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that measures one round with words of a command line, and returns the run."""
    monkeypatch.chdir(tmp_path)

    def measured(*words):
        assert run_command_line(["run", *words, "--rounds", "1", "--phases"]) == 0
        return Store(tmp_path / "results").read("last")

    return measured


@pytest.mark.slow
def test_a_phase_takes_as_long_as_the_server_makes_it(run, capsys):
    """By each library that reports it: the first byte has the server's delay, the body its pause within."""
    names = (*REPORT, "niquests", "http.client", "requests-session@processes")
    words = [word for name in names for word in ("-t", name)]
    found = run(*words, "-n", "5", "-c", "1", "--delay", "20ms", "--fault", "stall-body=50ms:100%")
    phases = {one.arm: one.phases for one in found.phases}
    for name in REPORT:
        assert phases[name]["connect"].count == 1, name
        found_seconds = {phase: phases[name][phase].p50 for phase in ("first_byte", "body")}
        assert found_seconds == pytest.approx({"first_byte": 0.02, "body": 0.05}, abs=LATE), name
    assert set(phases["niquests"]) == {"dns", "connect"}
    reasons = {one.arm: one.reason for one in found.phases if one.reason}
    assert reasons == {
        "http.client": "its library reports no phase that the lab can read",
        "requests-session@processes": "its requests are sent by processes of their own, which are not observed",
    }
    assert len(found.trials) == len(names)  # those of the phases are not among them
    said = capsys.readouterr().out
    assert "niquests: reports no more than DNS, connect" in said
    assert "Phases of a request" in said


@pytest.mark.slow
def test_the_wait_for_a_connection_explains_a_latency_that_holds_it(run, capsys):
    """Eight requests a connection begin at once: the last waits for seven delays. The caution tells the median wait."""
    found = run("-t", "aiohttp@gather", "-c", "4", "-n", "32", "--delay", "20ms", "--connections", "warm")
    (one,) = found.phases
    assert one.phases["pool"].count == 32
    assert 3 * 0.02 < one.phases["pool"].p50 < 5 * 0.02
    assert 7 * 0.02 <= one.phases["pool"].p99 < 9 * 0.02
    assert run_command_line(["report", "last", "--all"]) == 0
    assert "the median wait, by --phases: aiohttp@gather " in " ".join(capsys.readouterr().out.split())


def test_phases_of_a_search_are_refused(capsys):
    """A search has no single load: one line, and exit code 2."""
    assert run_command_line(["run", "-t", "aiohttp@workers", "--find-max", "p99<1s", "--phases"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--phases with --find-max" in line
