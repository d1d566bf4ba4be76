"""Links of experiments: of all workloads, of single arms, as axes; and what is refused, with its line."""

from __future__ import annotations

from dataclasses import replace

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
    assert (near.name, near.link) == ("urllib3", Link(0.0, 1e7, 65_536))
    assert [(arm.name, arm.sweep) for arm in far] == [("far[rtt=80ms]", "far"), ("far[rtt=90ms]", "far")]
    assert far[1].link == Link(0.09, 1e7, 112_500)


def test_a_list_of_buffers_is_an_axis(read):
    """Each arm has the bandwidth of its workload."""
    plan = read(HEAD + '[common]\nbandwidth = "10mbit"\nbuffer = ["64KiB", "1MB"]\n').plan()
    assert [arm.link for arm in plan.arms] == [Link(0.0, 1e7, 65_536), Link(0.0, 1e7, 1_000_000)]
    assert plan.arms[0].name == "urllib3[buffer=64KiB]"


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ('[common]\nrtt = "1ms"\nbuffer = "64KiB"\n', 7, "common.buffer"),
        ('[arms.far]\nstrategy = "pycurl"\nbuffer = "64KiB"\n', 7, "arms.far.buffer"),
    ],
)
def test_a_buffer_without_a_bandwidth_is_refused_where_it_is(text, line, key, read):
    """Nothing would wait in it."""
    with pytest.raises(LabError, match=rf"line {line}: {key}: a buffer of 65,536 bytes without a bandwidth"):
        read(HEAD + text).plan()


def test_an_arm_behind_a_link_is_another_one_than_without(read):
    """So an article's arm can stand beside itself behind a link."""
    plan = read(HEAD + '[arms.near]\nstrategy = "pycurl"\n[arms.far]\nstrategy = "pycurl"\nrtt = "106ms"\n').plan()
    assert [str(arm.link) for arm in plan.arms] == ["None", "None", "106 ms"]


def test_a_file_without_a_link_can_be_measured_behind_one(read):
    """As the service does in a stack that has a link."""
    file = read(HEAD)
    (arm,) = replace(file, experiment=file.experiment.behind(Link(0.035, 2e7, 64_000))).plan().arms
    assert (arm.name, arm.link) == ("urllib3", Link(0.035, 2e7, 64_000))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[common]\nrtt = "-1ms"\n', r"line 6: common.rtt: '-1ms' is not a length of time"),
        ('[common]\nrtt = "11s"\n', r"line 6: common.rtt: a round-trip time of 11 s; write 0ms to 10s"),
        ('[common]\nbandwidth = "0mbit"\n', r"line 6: common.bandwidth: .*write 1kbit to 100gbit"),
        ('[common]\nbuffer = "0KB"\n', r"line 6: common.buffer: a buffer of 0 bytes; write 1500B to 1GiB"),
        ('buffer = "64000"\n', r"line 5: workloads.w.buffer: '64000' is not a buffer; write 64KiB"),
        ('bandwidth = "20"\n', r"line 5: workloads.w.bandwidth: '20' is not a bandwidth"),
        ('rtt = ["1s", "1000ms"]\n', r"line 5: workloads.w.rtt: an axis is a list of values, each once"),
        ("rtt = []\n", r"line 5: workloads.w.rtt: an axis is a list of values"),
        ("rtt = 50\n", r"line 5: workloads.w.rtt: 50 without a unit is a time in seconds; write 50ms, or 0 to 10$"),
        ('[arms.a]\nstrategy = "pycurl"\nrtt = "1 ms"\n', r"line 7: arms.a.rtt: '1 ms' is not a length of time"),
    ],
)
def test_what_is_no_link_is_refused_with_its_line(read, text, message):
    """An invalid link is refused with its line before anything is measured."""
    with pytest.raises(LabError, match=message):
        read(HEAD + text)


def test_an_overhead_may_be_compared_behind_a_link_without_a_delay(read):
    """It is the latency less the round trip."""
    claim = '[claims.so]\ntext = "So"\nkind = "less"\nfigure = "overhead"\na = "urllib3"\nb = "b"\n'
    text = HEAD + '[arms.b]\nstrategy = "pycurl"\n' + claim
    with pytest.raises(LabError, match=r"arm 'urllib3' does not keep; write delay = \"100ms\" in its workload, or rtt"):
        read(text).plan()
    assert read(text + '[common]\nrtt = "5ms"\n').plan().claims
