"""Times, numbers and keys of experiment files: one grammar with the command line, and one line for each mistake."""

from __future__ import annotations

import pytest

from clientlab.errors import LabError
from clientlab.experiments.file import read_experiment

TOP = 'question = "Which?"\nstrategies = ["urllib3"]\n'
ARM = 'question = "Which?"\n[workloads.w]\n[arms.a]\nstrategy = "urllib3"\n'


@pytest.fixture
def read(tmp_path):
    """The experiment of a file with this text."""

    def call(text: str, *, quick: bool = False):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return read_experiment(path, quick=quick)

    return call


@pytest.mark.parametrize("key", ["duration", "timeout", "deadline", "max_late", "request_limit"])
def test_each_time_of_a_workload_is_written_with_its_unit(key, read):
    """As on the command line."""
    workload = read(TOP + f'[workloads.w]\n{key} = "120ms"\n').experiment.workloads["w"].first
    assert getattr(workload, key) == 0.12


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        (TOP + '[workloads.w]\ndelay = "20"\n', "line 4: workloads.w.delay: ", "20ms or 20s"),
        (TOP + "[workloads.w]\ndelay = 20\n", "line 4: workloads.w.delay: ", "20ms or 20s"),
        (TOP + '[workloads.w]\ndelay = ["5ms", "uniform:10ms,30"]\n', "line 4: workloads.w.delay: ", "30ms or 30s"),
        (TOP + '[workloads.w]\ndelay = "lognormal:20,0.3"\n', "line 4: workloads.w.delay: ", "20ms or 20s"),
        (TOP + "[common]\nduration = 2.0\n[workloads.w]\n", "line 4: common.duration: ", "2.0s"),
        (TOP + '[workloads.w]\nstages = "0s:10/s,20:30/s"\n', "line 4: workloads.w.stages: ", "20s"),
        (ARM + "rtt = [0.05]\n", "line 5: arms.a.rtt: ", "0.05s"),
        ("budget = 60\n" + ARM, "line 1: budget: ", "60s"),
        (ARM + '[quick.workloads.w]\ndelay = "20"\n', "line 6: quick.workloads.w.delay: ", "20s"),
    ],
)
def test_a_time_without_a_unit_is_refused_with_its_line_and_key(text, place, hint, read):
    """`delay = "20"` looks like milliseconds, and would mean 20 s: a run of 18 minutes instead of one second."""
    with pytest.raises(LabError) as caught:
        read(text, quick="[quick" in text)
    assert str(caught.value).partition("mine.toml: ")[2].startswith(place)
    assert hint in str(caught.value)


def test_a_lognormal_delay_needs_no_unit_for_its_sigma(read):
    """Nor does any value that is not a time."""
    text = TOP + '[workloads.w]\ndelay = "lognormal:20ms,0.3"\nstages = "0s:10,20s:30"\n'
    assert read(text).experiment.workloads["w"].first.delay.values == (0.02, 0.3)


def test_a_number_in_quotes_is_a_number_everywhere(read):
    """A file is read as the command line is, where each value is a text."""
    top = 'rounds = "5"\nseed = "7"\nworkers = { flask = "4" }\n' + TOP
    text = '[workloads.w]\nrequests = "400"\nwarmup = "0"\nrate = "50"\n[arms.a]\nstrategy = "urllib3"\n'
    experiment = read(top + text + 'settings = { pool = ["8", "16"] }\nconcurrency = ["2", "4"]\n').experiment
    workload, arm = experiment.workloads["w"].first, experiment.arms["a"]
    assert (experiment.rounds, experiment.seed, experiment.workers) == (5, 7, {"flask": 4})
    assert (workload.requests, workload.warmup, workload.rate) == (400, 0, 50.0)
    assert (arm.settings, arm.concurrency) == ({"pool": [8, 16]}, [2, 4])
    plan = read(TOP + '[workloads.w]\nrequests = ["400", "500"]\n').plan()
    assert [arm.axes["requests"] for arm in plan.arms] == [400, 500]


@pytest.mark.parametrize(
    ("text", "place", "more"),
    [
        ("ronuds = 3\n" + TOP + "[workloads.w]\n", "line 1: ", "`ronuds`; nearest: rounds"),
        (TOP + '[common]\ndealy = ["1s"]\n[workloads.w]\n', "line 4: common: ", "`dealy`; nearest: delay"),
        (TOP + "[workloads.w]\nrounds = 3\n", "line 4: workloads.w: ", "`rounds`; it is one of the experiment"),
        (ARM.replace("strategy", "strateg"), "line 4: arms.a: ", "`strateg`; nearest: strategy"),
        (ARM + "[quick]\nronuds = 1\n", "line 6: quick: ", "`ronuds`; nearest: rounds"),
        ("[workloads.w]\n", "question: ", "missing"),
        (TOP, "workloads: ", "there is none"),
        ("rounds = 0\n" + ARM, "line 1: rounds: ", "0"),
        ('routes = ["proxi"]\n' + ARM, "line 1: routes.0: ", "'proxi'"),
        ('name = "My run"\n' + ARM, "line 1: name: ", "'My run'"),
        (TOP + '[workloads.w]\nduration = "2x"\n', "line 4: workloads.w.duration: ", "'2x'"),
        (TOP + "[workloads.w]\nrtt = 50\n", "line 4: workloads.w.rtt: ", "50ms"),
        (TOP + '[workloads.w]\nrequests = "many"\n', "line 4: workloads.w.requests: ", "'many'"),
        (TOP + '[workloads.w]\nread = "lines"\n', "line 4: workloads.w.read: ", "'chunks'"),
        (TOP + "[workloads.w]\nheaders = { X = 5 }\n", "line 4: workloads.w.headers.X: ", "5"),
        ("budget = 0\n" + ARM, "line 1: budget: ", "0"),
        (ARM + 'concurrency = [1, "x"]\n', "line 5: arms.a.concurrency.1: ", "'x'"),
        ("question = '?'\n[[arms.b]]\n", "line 2: arms.b: ", "dictionary"),
    ],
)
def test_a_mistake_is_named_with_line_key_and_value(text, place, more, read):
    """In one line."""
    with pytest.raises(LabError) as caught:
        read(text)
    said = str(caught.value).partition("mine.toml: ")[2]
    assert said.startswith(place)
    assert more in said
    assert "\n" not in said


@pytest.mark.parametrize("stem", ["bad_type", "v1.2_final"])
def test_a_file_name_may_have_underscores(stem, tmp_path):
    """It names the experiment."""
    path = tmp_path / f"{stem}.toml"
    path.write_text(ARM)
    assert read_experiment(path).experiment.name == stem


@pytest.mark.parametrize("stem", ["Mine", "my test", "x" * 65])
def test_a_bad_file_name_is_not_reported_as_a_key_of_the_file(stem, tmp_path):
    """The file has no key `name`. With one, its file name does not matter."""
    path = tmp_path / f"{stem}.toml"
    path.write_text(ARM)
    with pytest.raises(LabError) as caught:
        read_experiment(path)
    assert "file" in str(caught.value)
    assert ": name: " not in str(caught.value)
    path.write_text('name = "mine"\n' + ARM)
    assert read_experiment(path).experiment.name == "mine"
