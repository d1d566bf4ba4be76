"""Times, numbers and keys of experiment files: one grammar with the command line, and one line for each mistake."""

from __future__ import annotations

import re

import pytest

from clientlab.errors import FieldError, LabError
from clientlab.experiments.experiment import Experiment, WorkloadTable
from clientlab.experiments.file import read_experiment
from clientlab.experiments.overrides import Overrides, overridden
from clientlab.nearest import nearest
from clientlab.workload.workload import Workload

TOP = 'question = "Which?"\nstrategies = ["urllib3"]\n'
ARM = 'question = "Which?"\n[workloads.w]\n[arms.a]\nstrategy = "urllib3"\n'


@pytest.fixture
def read(tmp_path):
    """The experiment of a file with this text."""

    def call(text: str):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return read_experiment(path)

    return call


@pytest.mark.parametrize(("written", "seconds"), [('"2s"', 2.0), ('"120ms"', 0.12), ("0.12", 0.12), ('"0.12"', 0.12)])
@pytest.mark.parametrize("key", ["duration", "timeout", "deadline", "max_late", "request_limit"])
def test_each_time_of_a_workload_is_written_as_on_the_command_line(key, written, seconds, read):
    """With a unit, or as a number of seconds."""
    workload = read(TOP + f"[workloads.w]\n{key} = {written}\n").experiment.workloads["w"].first
    assert getattr(workload, key) == seconds


@pytest.mark.parametrize("written", ['"10ms"', "0.01", '"0.01"'])
def test_delays_round_trips_and_budgets_have_the_same_times(written, read):
    """So do the links of arms, and the length of a search."""
    search = f'find_max = {{ conditions = "p99<1s", most_seconds = {written} }}\n'
    text = f"budget = {written}\n{search}{TOP}[workloads.w]\ndelay = {written}\nrtt = {written}\n"
    experiment = read(text + f'[arms.a]\nstrategy = "urllib3"\nrtt = {written}\n').experiment
    table = experiment.workloads["w"]
    assert (experiment.budget, experiment.find_max.most_seconds, experiment.arms["a"].rtt) == (0.01, 0.01, 0.01)
    assert (table.rtt, table.first.delay.constant) == (0.01, 0.01)


def test_an_axis_has_times_in_each_form(read):
    """A number in quotes has its place among numbers, and a search looks at each length."""
    plan = read(TOP + '[workloads.w]\nduration = ["500ms", 1, "2"]\ndelay = [0.01, "20ms"]\n').plan()
    assert [arm.axes for arm in plan.arms[::2]] == [{"duration": one, "delay": 0.01} for one in ("500ms", 1, 2)]
    assert [plan.workloads[arm.workload].duration for arm in plan.arms[1::2]] == [0.5, 1.0, 2.0]
    search = 'find_max = { conditions = "p99<1s" }\n'
    assert read(search + TOP + '[workloads.w]\nduration = ["2s", "3s"]\n').plan().find_max
    with pytest.raises(LabError, match=r"a trial of 0.1 s has 10 requests"):
        read(search + TOP + '[workloads.w]\nduration = ["2s", "100ms"]\n').plan()


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
    ("text", "says"),
    [
        ("ronuds = 3\n" + TOP + "[workloads.w]\n", "line 1: unknown key `ronuds`; nearest: rounds"),
        (TOP + '[workloads.w]\ndealy = "1s"\n', "line 4: workloads.w: unknown key `dealy`; nearest: delay"),
        (TOP + '[common]\ndealy = ["1s"]\n[workloads.w]\n', "line 4: common: unknown key `dealy`; nearest: delay"),
        (TOP + "[workloads.w]\nronuds = 3\n", "line 4: workloads.w: unknown key `ronuds`; nearest: rounds"),
        (TOP + "[workloads.w]\nrounds = 3\n",
         "line 4: workloads.w: unknown key `rounds`; it is one of the experiment: write it above the first [table]"),
        (TOP + "[workload.w]\n", "line 3: unknown key `workload`; nearest: workloads"),
        (ARM.replace("strategy", "strateg"), "line 4: arms.a: unknown key `strateg`; nearest: strategy"),
        (ARM + "[quick]\nronuds = 1\n", "line 6: quick: unknown key `ronuds`; nearest: rounds"),
        ("find_max = { condition = 'p99<1s' }\n" + ARM,
         "line 1: find_max: unknown key `condition`; nearest: conditions"),
        ("[workloads.w]\n", "question: it is missing; write it"),
        (ARM + "[arms.b]\n", "line 5: arms.b.strategy: it is missing; write it"),
        (TOP + '[workloads.w]\nduration = "2x"\n',
         "line 4: workloads.w.duration: '2x' is not a length of time; write 120ms, 2s or 0.12"),
        (TOP + "[workloads.w]\ndelay = true\n",
         "line 4: workloads.w.delay: 'true' is not a length of time; write 120ms, 2s or 0.12"),
        (TOP + "[workloads.w]\nduration = true\n",
         "line 4: workloads.w.duration: 'true' is not a length of time; write 120ms, 2s or 0.12"),
        (TOP + "[workloads.w]\nrtt = 50\n",
         "line 4: workloads.w.rtt: 50 without a unit is a time in seconds; write 50ms, or 0 to 10"),
        (TOP + "[workloads.w]\nbandwidth = 20\n",
         "line 4: workloads.w.bandwidth: '20' is not a bandwidth; write 512kbit, 20mbit or 1gbit (bits per second)"),
        (TOP + '[workloads.w]\nrequests = "many"\n',
         "line 4: workloads.w.requests: 'many': write a whole number, as 100"),
        (TOP + '[workloads.w]\nread = "lines"\n', "line 4: workloads.w.read: 'lines': write 'whole' or 'chunks'"),
        (TOP + "[workloads.w]\npath = 5\n", "line 4: workloads.w.path: 5: write a text in quotes"),
        (TOP + "[workloads.w]\nheaders = { X = 5 }\n", "line 4: workloads.w.headers.X: 5: write a text in quotes"),
        ("budget = 0\n" + ARM, "line 1: budget: 0: write more than 0"),
        (ARM + 'concurrency = [1, "x"]\n', "line 5: arms.a.concurrency.1: 'x': write a whole number, as 100"),
        (ARM + "rtt = { ms = 5 }\n",
         "line 5: arms.a.rtt: \"{'ms': 5}\" is not a length of time; write 120ms, 2s or 0.12"),
        ("environments = { 'a b' = { python = '3.13' } }\n" + ARM,
         "line 1: environments.a b: 'a b': write up to 32 letters, digits, '_', '.' and '-'"),
        ("question = '?'\n[[arms.b]]\n", "line 2: arms.b: [{}]: write a table"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_key_value_and_remedy(text, says, read):
    """No part of the line is a name of pydantic's."""
    with pytest.raises(LabError) as caught:
        read(text)
    assert str(caught.value).partition("mine.toml: ")[2] == says


@pytest.mark.parametrize(
    ("given", "says"), [({"slices": 0}, "0: write 1 or more"), ({"budget": 0.0}, "0.0: write more")]
)
def test_a_value_of_an_option_is_refused_as_that_of_a_key(given, says):
    """Both ended with a traceback of pydantic's."""
    base = Experiment(name="x", question="?", strategies=["urllib3"], workloads={"w": WorkloadTable(first=Workload())})
    with pytest.raises(FieldError, match=re.escape(f"{next(iter(given))}: {says}")):
        overridden(base, Overrides(**given))


def test_the_nearest_names_are_the_similar_ones_only():
    """Names that are clearly less similar than the first one are left out; without a similar one, nothing is said."""
    assert nearest("ronuds", ["rounds", "routes", "shards"]) == "; nearest: rounds"
    assert nearest("arm-c", ["arm-a", "arm-b", "harm"]) == "; nearest: arm-b, arm-a"
    assert nearest("x", ["rounds"]) == ""
