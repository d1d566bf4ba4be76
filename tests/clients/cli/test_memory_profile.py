"""`clientlab run --profile memory`: planted allocations, and what is shown where memray cannot record them."""

from __future__ import annotations

import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from clientlab.measuring import profiler
from clientlab.running import memory_profiling

PLANTED = '''
"""A client that keeps 1.5 MiB in every 20th call, in two functions, and makes 200 allocations in each call."""

import urllib.request

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
kept, calls = [], 0


def keep():
    kept.append(bytearray(1 << 20))


def hold():
    kept.append(bytearray(1 << 19))


def churn():
    for _ in range(100):
        bytearray(1000)


def fetch(url):
    global calls
    calls += 1
    if calls % 20 == 0:
        keep()
        hold()
    churn()
    with opener.open(url) as response:
        return response.status, response.read()
'''
REQUESTS = 200
KEPT = 10
"""Of the 200 calls behind a warm-up of 10."""

CHURNED = 100 * (sys.getsizeof(bytearray()) + 1001)
"""Bytes of a call: the objects, and what they hold."""

POINTS = 0.03


@pytest.fixture
def planted(tmp_path):
    (tmp_path / "planted.py").write_text(PLANTED, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("planted")
def test_planted_memory_is_attributed_to_its_function(clientlab, results, tmp_path, monkeypatch):
    """At the peak and over all allocations. The run has the profile of CPU time too, and each has its section."""
    monkeypatch.setattr(profiler, "_PROGRAM", "no-such-py-spy")
    words = ("-t", "planted.py:fetch", "-n", REQUESTS, "--rounds", 1, "--profile", "--profile", "memory")
    said = clientlab("run", *words, "--flame", "flame.svg", "--html", "a.html")
    assert said.code == 0, said.err
    run = results.read("last")
    assert len(run.trials) == 1  # no figure has the trials under a profiler
    assert [one.kind for one in run.profiles] == ["cpu", "memory"]
    profile = run.profiles[1]
    assert profile.reason is None
    memory = profile.memory
    assert memory.requests == REQUESTS
    own = {one.name: one.own for one in profile.functions if one.package == "planted.py"}
    assert own["keep"] == pytest.approx(KEPT * (1 << 20) / memory.peak_bytes, abs=POINTS)
    assert own["hold"] == pytest.approx(KEPT * (1 << 19) / memory.peak_bytes, abs=POINTS)
    (churn,) = [one for one in memory.functions if one.name == "churn"]
    assert churn.allocations / REQUESTS == pytest.approx(200, rel=POINTS)
    assert churn.bytes / memory.allocated.bytes == pytest.approx(
        CHURNED * REQUESTS / memory.allocated.bytes, abs=POINTS
    )
    assert f"peak {memory.peak_bytes / (1 << 20):.1f} MiB above its start" in said.out
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.index("Where the CPU time goes") < page.index("Where the memory goes")
    for file in ("flame.svg", "a.html"):
        text = (tmp_path / file).read_text(encoding="utf-8")
        assert "planted.py:fetch (memory at the peak)" in text, file


def test_without_memray_nothing_is_measured(clientlab, results, monkeypatch):
    """One line says what to install. The exit code is 2."""
    monkeypatch.setattr(memory_profiling, "_PROFILER", "no-such-memray")
    said = clientlab("run", "-t", "urllib3", "-n", 10, "--rounds", 1, "--profile", "memory")
    assert said.code == 2
    (line,) = said.err.splitlines()
    assert "--profile memory: memray is not installed; install memray (`pip install 'clientlab[profile]'`)" in line
    assert not results.names()


@pytest.mark.slow
def test_an_arm_that_cannot_be_recorded_leaves_the_others(clientlab, results):
    """Requests of a pool's processes are not seen, and a line says so."""
    words = ("-t", "http.client", "-t", "http.client@processes", "-n", 50, "--rounds", 1, "--profile", "memory")
    said = clientlab("run", *words)
    assert said.code == 0, said.err
    one, other = results.read("last").profiles
    assert one.memory is not None
    assert other.reason == "its requests are sent by processes of their own, whose allocations are not recorded"
    assert f"memory profile of http.client@processes: {other.reason}" in said.err


@pytest.mark.slow
def test_an_environment_without_memray_says_how_to_install_it_there(clientlab, results, tmp_path):
    """The arm of the other environment has its profile. Where no environment has memray, nothing is measured."""
    for name in ("bare", "more"):
        venv.create(tmp_path / name, symlinks=True)
    (packages,) = (tmp_path / "more").glob("lib/python*/site-packages")
    Path(packages, "own.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    words = ("-t", "http.client", "-n", 50, "--rounds", 1, "--profile", "memory", "--env", f"bare={tmp_path / 'bare'}")
    said = clientlab("run", *words)
    assert said.code == 2
    advice = f"`uv pip install --python {tmp_path / 'bare'} memray`"
    assert "--profile memory: memray is not installed in environment 'bare'" in said.err
    assert advice in said.err
    assert not results.names()
    said = clientlab("run", *words, "--env", f"more={tmp_path / 'more'}")
    assert said.code == 0, said.err
    bare, more = results.read("last").profiles
    assert advice in bare.reason
    assert more.memory is not None
    assert more.memory.requests == 50
