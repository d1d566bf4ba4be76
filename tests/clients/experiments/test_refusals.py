"""Times, numbers and keys of experiment files: one grammar with the command line, and one line for each mistake."""

from __future__ import annotations

import pytest

from clientlab.errors import LabError
from clientlab.experiments.file import read_experiment

TOP = 'question = "Which?"\nstrategies = ["urllib3"]\n'
ARM = 'question = "Which?"\n[workloads.w]\n[arms.a]\nstrategy = "urllib3"\n'


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        (TOP + '[workloads.w]\ndelay = "20"\n', "workloads.w.delay: ", "20ms or 20s"),
        (TOP + '[workloads.w]\ndelay = ["5ms", "uniform:10ms,30"]\n', "workloads.w.delay: ", "30ms or 30s"),
        (TOP + "[common]\nduration = 2.0\n[workloads.w]\n", "common.duration: ", "2.0s"),
        (TOP + '[workloads.w]\nstages = "0s:10/s,20:30/s"\n', "workloads.w.stages: ", "20s"),
        (ARM + "rtt = [0.05]\n", "arms.a.rtt: ", "0.05s"),
        ("budget = 60\n" + ARM, "budget: ", "60s"),
    ],
)
def test_a_time_without_a_unit_is_refused_with_its_key(text, place, hint, mine):
    """`delay = "20"` looks like milliseconds, and would mean 20 s: a run of 18 minutes instead of one second."""
    with pytest.raises(LabError) as caught:
        read_experiment(mine(text))
    assert str(caught.value).partition("mine.toml: ")[2].startswith(place)
    assert hint in str(caught.value)


def test_a_lognormal_delay_needs_no_unit_for_its_sigma(mine):
    text = TOP + '[workloads.w]\ndelay = "lognormal:20ms,0.3"\nstages = "0s:10,20s:30"\n'
    assert read_experiment(mine(text)).experiment.workloads["w"].first.delay.values == (0.02, 0.3)


@pytest.mark.parametrize(
    ("text", "place", "more"),
    [
        ("ronuds = 3\n" + TOP + "[workloads.w]\n", "ronuds: ", "unknown key; nearest: rounds"),
        (TOP + '[common]\ndealy = ["1s"]\n[workloads.w]\n', "common.dealy: ", "unknown key; nearest: delay"),
        (TOP + "[workloads.w]\nrounds = 3\n", "workloads.w.rounds: ", "unknown key; it belongs to another table"),
        (ARM.replace("strategy", "strateg"), "arms.a.strateg: ", "unknown key; nearest: strategy"),
        ("[workloads.w]\n", "question: ", "required"),
        (TOP, "workloads: ", "there is none"),
        ('routes = ["proxi"]\n' + ARM, "routes.0: ", "'proxi'"),
        ('name = "My run"\n' + ARM, "name: ", "'My run'"),
        ("rounds = 1e400\n" + ARM, "rounds: ", "inf"),
        ("question =", "", "Invalid value"),
        (ARM + '[common]\nrtt = "11s"\n', "common.rtt: ", "11"),
        (ARM + 'bandwidth = "0mbit"\n', "arms.a.bandwidth: ", "0 bit/s"),
        (TOP + '[workloads.w]\nduration = "2x"\n', "workloads.w.duration: ", "'2x'"),
        (TOP + "[workloads.w]\nrtt = 50\n", "workloads.w.rtt: ", "50ms"),
        (TOP + '[workloads.w]\nrequests = "many"\n', "workloads.w.requests: ", "'many'"),
        (TOP + '[workloads.w]\nread = "lines"\n', "workloads.w.read: ", "'chunks'"),
        ("budget = 0\n" + ARM, "budget: ", "0"),
        (ARM + 'concurrency = [1, "x"]\n', "arms.a.concurrency: ", "'x'"),
        ("question = '?'\n[[arms.b]]\n", "arms.b: ", "dictionary"),
    ],
)
def test_a_mistake_is_named_with_key_and_value(text, place, more, mine):
    with pytest.raises(LabError) as caught:
        read_experiment(mine(text))
    said = str(caught.value).partition("mine.toml: ")[2]
    assert said.startswith(place)
    assert more in said
    assert "\n" not in said


def test_a_bad_file_name_is_not_reported_as_a_key_of_the_file(tmp_path):
    path = tmp_path / "My test.toml"
    path.write_text(ARM)
    with pytest.raises(LabError) as caught:
        read_experiment(path)
    assert "file" in str(caught.value)
    assert ": name: " not in str(caught.value)
    path.write_text('name = "mine"\n' + ARM)
    assert read_experiment(path).experiment.name == "mine"


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(LabError, match=r"mine\.toml: [^\n]+$"):
        read_experiment(path)
