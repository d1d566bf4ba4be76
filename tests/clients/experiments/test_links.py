"""Links of experiments: of all workloads, of single arms, as axes; and what is refused, with its line."""

from __future__ import annotations

import pytest

from clientlab.errors import LabError
from clientlab.experiments.file import read_experiment
from clientlab.workload.link import Link, link_of

HEAD = 'question = "Which?"\nstrategies = ["urllib3"]\n[workloads.w]\nrequests = 5\n'


@pytest.fixture
def read(tmp_path):
    """A file of this text."""

    def call(text: str):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return read_experiment(path)

    return call


def test_without_a_key_there_is_no_link_and_a_time_of_0_is_one(read):
    """A link that delays nothing is measured as a link."""
    (arm,) = read(HEAD).plan().arms
    assert arm.link is None
    (arm,) = read(HEAD + '[common]\nrtt = "0ms"\n').plan().arms
    assert (arm.name, arm.link, arm.axes) == ("urllib3", Link(0.0), {})


def test_a_list_of_times_or_rates_is_an_axis(read):
    """Each arm has its place in its name, and all do one workload, so that their requests are equal."""
    plan = read(HEAD + '[common]\nrtt = ["1ms", "20ms"]\nbandwidth = ["10mbit", "1gbit"]\n').plan()
    assert [arm.link for arm in plan.arms] == [link_of(rtt, rate) for rtt in (0.001, 0.02) for rate in (1e7, 1e9)]
    assert plan.arms[0].name == "urllib3[rtt=1ms, bandwidth=10mbit]"
    assert plan.arms[0].axes == {"rtt": "1ms", "bandwidth": "10mbit"}
    assert {arm.workload for arm in plan.arms} == {"w"}
    assert len(plan.links) == 4


def test_an_arm_has_its_own_link_or_that_of_its_workload(read):
    """Time and rate are replaced each by itself."""
    text = HEAD + '[common]\nbandwidth = "10mbit"\n[arms.far]\nstrategy = "pycurl"\nrtt = ["80ms", "90ms"]\n'
    near, *far = read(text).plan().arms
    assert (near.name, near.link) == ("urllib3", Link(0.0, 1e7))
    assert [(arm.name, arm.sweep) for arm in far] == [("far[rtt=80ms]", "far"), ("far[rtt=90ms]", "far")]
    assert far[1].link == Link(0.09, 1e7)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[common]\nrtt = "11s"\n', "line 6: common.rtt: "),
        ('[common]\nbandwidth = "0mbit"\n', "line 6: common.bandwidth: "),
        ('rtt = ["1s", "1000ms"]\n', "line 5: workloads.w.rtt: "),
        ('[arms.a]\nstrategy = "pycurl"\nrtt = "1 ms"\n', "line 7: arms.a.rtt: "),
    ],
)
def test_what_is_no_link_is_refused_with_its_line(read, text, place):
    """An invalid link is refused with its line before anything is measured."""
    with pytest.raises(LabError, match=place):
        read(HEAD + text)
