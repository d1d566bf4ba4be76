"""`clientlab run --profile`: shares of planted functions, and what is shown where a profiler cannot look."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from clientlab.measuring import profiler

PLANTED = '''
"""A client with planted busy functions. It measures the CPU time of each, and its own."""

import hashlib
import json
import os
import time
import urllib.request

TIMES = {"python_loop": 0.0, "digest": 0.0, "parse": 0.0}
DOCUMENT, BLOCK = json.dumps([{"a": i, "b": str(i)} for i in range(60)]), b"x" * 120_000
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
calls, began = 0, 0.0


def python_loop():
    return sum(i * i for i in range(9000))


def digest():
    for _ in range(2):
        hashlib.md5(BLOCK).digest()


def parse():
    for _ in range(8):
        json.loads(DOCUMENT)


def fetch(url):
    global calls, began
    if calls == 10:  # behind the warm-up
        began = time.process_time()
        TIMES.update(dict.fromkeys(TIMES, 0.0))
    calls += 1
    for function in (python_loop, digest, parse):
        before = time.thread_time()
        function()
        TIMES[function.__name__] += time.thread_time() - before
    with opener.open(url) as response:
        found = response.status, response.read()
    if calls == int(os.environ["PLANTED_CALLS"]):
        with open(os.environ["PLANTED_FILE"], "a") as file:
            file.write(json.dumps({**TIMES, "whole": time.process_time() - began}) + chr(10))
    return found
'''
POINTS, LEAST_SAMPLES = 0.03, 2_500
"""A sampling error of three standard deviations: of a share of one half, with so many samples."""


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_shares_of_planted_functions_are_their_cpu_time(clientlab, results, tmp_path, monkeypatch):
    """The client measures the CPU time of its own functions: one in Python, and two that work in C."""
    profiler.program()
    (tmp_path / "planted.py").write_text(PLANTED, encoding="utf-8")
    monkeypatch.setenv("PLANTED_FILE", str(tmp_path / "truth.jsonl"))
    monkeypatch.setenv("PLANTED_CALLS", "3010")
    said = clientlab(
        "run",
        "-t",
        "planted.py:fetch",
        "-n",
        3000,
        "--rounds",
        1,
        "--profile",
        "--flame",
        "flame.svg",
        "--html",
        "a.html",
    )
    assert said.code == 0, said.err
    run = results.read("last")
    (profile,) = run.profiles
    assert profile.reason is None
    assert profile.attributed >= 0.95
    assert sum(profile.packages.values()) == pytest.approx(profile.attributed, abs=0.001)
    assert profile.samples >= LEAST_SAMPLES
    lines = [json.loads(line) for line in (tmp_path / "truth.jsonl").read_text().splitlines()]
    timed = lines[1 : 1 + profile.trials]  # the first is of the round
    truth = {name: sum(line[name] for line in timed) / sum(line["whole"] for line in timed) for name in timed[0]}
    found = {function.name: function.total for function in profile.functions if function.package == "planted.py"}
    for name in ("python_loop", "digest", "parse"):
        assert found[name] == pytest.approx(truth[name], abs=POINTS), truth
    assert len(run.trials) == 1  # no figure has the trials under the profiler
    assert "planted.py" in said.out
    root = ET.fromstring((tmp_path / "flame.svg").read_text(encoding="utf-8"))  # noqa: S314 - the lab wrote it
    assert any("python_loop" in (title.text or "") for title in root.iter("{http://www.w3.org/2000/svg}title"))
    assert "python_loop" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_without_py_spy_the_trial_still_samples_itself(clientlab, results, monkeypatch):
    """The profile lacks native frames and the GIL. One line says what to install."""
    monkeypatch.setattr(profiler, "_PROGRAM", "no-such-py-spy")
    said = clientlab("run", "-t", "urllib3", "-n", 300, "--rounds", 1, "--profile")
    assert said.code == 0, said.err
    (profile,) = results.read("last").profiles
    assert profile.views == ["timer"]
    assert "urllib3" in profile.packages
    assert profile.gil_held is None
    (note,) = [note for note in profile.notes if "native" in note]
    assert "py-spy is not installed; install py-spy (`pip install 'clientlab[profile]'`)" in note


def test_arms_with_threads_need_py_spy(clientlab, results, monkeypatch):
    """A run without it is whole; the arm has the reason."""
    monkeypatch.setattr(profiler, "_PROGRAM", "no-such-py-spy")
    said = clientlab("run", "-t", "urllib3@threads", "-n", 100, "--rounds", 1, "--profile")
    assert said.code == 0
    (profile,) = results.read("last").profiles
    assert profile.reason.startswith("py-spy is not installed")
    assert "profile of urllib3@threads: py-spy is not installed" in said.err


def test_a_refusal_to_trace_says_what_to_allow(clientlab, results, monkeypatch, tmp_path):
    """As in a container without SYS_PTRACE. What the trial sampled itself is shown."""
    refusing = tmp_path / "refusing"
    refusing.write_text(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'py-spy 0' && exit\necho 'Permission Denied' >&2\nexit 1\n"
    )
    refusing.chmod(0o755)
    monkeypatch.setattr(profiler, "_PROGRAM", str(refusing))
    said = clientlab("run", "-t", "urllib3", "-n", 300, "--rounds", 1, "--profile")
    assert said.code == 0, said.err
    (profile,) = results.read("last").profiles
    assert profile.views == ["timer"]
    assert any("does not let py-spy trace the trial" in note and "SYS_PTRACE" in note for note in profile.notes)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-t", "urllib3", "--flame", "a.svg"), "--flame without --profile"),
        (("-t", "urllib3", "--profile", "--find-max", "p99<1s"), "--profile with --find-max"),
        (("-t", "urllib3", "--profile", "--flame", "a.txt"), "the name must end with .svg"),
        (("-t", "urllib3", "--profile", "gpu"), "'gpu'"),
    ],
)
def test_options_that_cannot_be_are_one_line(clientlab, words, message):
    """Nothing is measured."""
    said = clientlab("run", *words)
    assert said.code == 2
    assert message in said.err
