"""Arms: what an experiment's file names, multiplied out, and what can't be."""

from __future__ import annotations

import pytest

from clientlab.errors import LabError
from clientlab.experiments.file import read_plan
from clientlab.workload.link import Link, link_of
from clients.plans import checked_plan

HEAD = 'question = "Which?"\n[workloads.w]\nrequests = 50\n[workloads.x]\nrequests = 10\n'
ARM = HEAD + '[arms.it]\nstrategy = "aiohttp@semaphore"\nworkload = "w"\n'
CLAIM = '[claims.so]\ntext = "It is so"\nkind = "less"\n'


def test_lists_of_an_arm_are_axes_too(mine):
    arms = checked_plan(mine(ARM + 'concurrency = [5, 9]\nsettings = { pool = [1, 2], loop = "asyncio" }\n')).arms
    assert [arm.axes for arm in arms] == [{"concurrency": c, "pool": p} for c in (5, 9) for p in (1, 2)]
    assert arms[0].strategy == "aiohttp@semaphore?pool=1&loop=asyncio"
    assert arms[0].name == "it[concurrency=5, pool=1]"


def test_an_arm_does_with_all_what_it_does_not_name(mine):
    text = 'routes = ["direct", "proxy"]\n' + HEAD + '[arms.it]\nstrategy = "urllib3"\n'
    arms = checked_plan(
        mine(text + '[arms.other]\nstrategy = "pycurl"\nworkload = "x"\nroute = "direct"\nupstream = "flask"\n')
    ).arms
    assert [arm.name for arm in arms] == ["it (w, direct)", "it (w, proxy)", "it (x, direct)", "it (x, proxy)", "other"]
    assert {arm.upstream for arm in arms if arm.label == "it"} == {"aiohttp"}
    assert (arms[-1].upstream, arms[-1].route, arms[-1].workload) == ("flask", "direct", "x")


def test_common_fields_are_those_of_every_workload_without_its_own(mine):
    workloads = checked_plan(
        mine(ARM.replace('workload = "w"\n', "") + "[common]\nrequests = 3\nwarmup = 1\n")
    ).workloads
    assert {name: (w.requests, w.warmup) for name, w in workloads.items()} == {"w": (50, 1), "x": (10, 1)}


def test_claims_name_arms_of_a_sweep_by_its_ends(mine):
    """So that they hold in the quick form, whose places are others."""
    sweep = ARM + "settings = { semaphore = [1, 5, 9] }\n"
    claims = CLAIM + 'a = "it[first]"\nb = "it[last]"\n[claims.best]\ntext = "!"\nkind = "optimum"\nsweep = "it"\n'
    quick = "[quick.arms.it.settings]\nsemaphore = [2, 3, 4]\n"
    full, short = (checked_plan(mine(sweep + claims + quick), quick=quick_) for quick_ in (False, True))
    less, best = full.claims
    assert (less.a, less.b) == ("it[semaphore=1]", "it[semaphore=9]")
    assert best.arms == ["it[semaphore=1]", "it[semaphore=5]", "it[semaphore=9]"]
    assert short.claims[0].b == "it[semaphore=4]"
    assert short.shortened == ["arms.it.settings.semaphore: [1, 5, 9] → [2, 3, 4]"]


def in_workload(fields: str) -> str:
    """The experiment with an arm, whose workload `w` has these fields instead of its number of requests."""
    return ARM.replace("requests = 50", fields)


WRONG = [
    (ARM.replace('"w"', '"v"'), "arms.it.workload: .*'v'"),
    (ARM.replace("aiohttp@", "aiohtp@"), "arms.it: .*'aiohtp@semaphore'"),
    (ARM + "settings = { nonsense = 1 }\n", "arms.it: .*'nonsense'"),
    (ARM + "concurrency = [3, 3]\n", "arms.it: .*twice"),
    (ARM + CLAIM + 'a = "it"\nb = "its"\n', "claims.so.b: .*'its'"),
    (ARM + CLAIM + 'a = "it"\n', "claims.so: "),
    (ARM + CLAIM.replace("less", "ratio") + 'a = "it"\nb = "it"\nband = [2, 1]\n', "claims.so: band"),
    (ARM + CLAIM.replace("less", "optimum") + 'sweep = "it"\n', "claims.so.sweep: .*'it'"),
    ('baseline = "no"\n' + ARM, "baseline: .*'no'"),
    (in_workload("requests = [5, 5]"), "workloads.w.requests: an axis"),
    (in_workload("seed = [1, 2]"), "workloads.w.seed: "),
    (ARM.replace("aiohttp@semaphore", "urllib3") + "concurrency = [1, 2]\n", "arms.it.concurrency: "),
    (ARM + "[common]\nwarmup = -1\n", "workloads.w.warmup: -1"),
    (ARM + "[quick.workloads.w]\nrequests = 0\n", "workloads.w.requests: 0"),
    (in_workload("requests = 50\nduration = '1s'"), "workloads.w.requests and duration"),
    (ARM.replace("semaphore", "gather").replace("requests = 50", "duration = '2500ms'"),
     "workloads.w.duration: 2.5: .*'aiohttp@gather'"),
    (ARM + "[quick.workloads.v]\nrequests = 1\n", "quick.workloads.v: "),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_a_mistake_is_named_with_its_file_and_key(text, says, mine):
    with pytest.raises(LabError, match=says) as caught:
        checked_plan(mine(text), quick="[quick" in text)
    assert "mine.toml: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_without_a_quick_form_is_refused_where_that_is_asked_for(mine):
    with pytest.raises(LabError, match="quick"):
        checked_plan(mine(ARM), quick=True)


LINKED = 'question = "Which?"\nstrategies = ["urllib3"]\n[workloads.w]\nrequests = 5\n'


def test_without_a_key_there_is_no_link_and_a_time_of_0_is_one(mine):
    (arm,) = read_plan(mine(LINKED)).arms
    assert arm.link is None
    (arm,) = read_plan(mine(LINKED + '[common]\nrtt = "0ms"\n')).arms
    assert (arm.name, arm.link, arm.axes) == ("urllib3", Link(0.0), {})


def test_a_list_of_times_or_rates_is_an_axis(mine):
    """Each arm has its place in its name, and all do one workload, so that their requests are equal."""
    plan = read_plan(mine(LINKED + '[common]\nrtt = ["1ms", "20ms"]\nbandwidth = ["10mbit", "1gbit"]\n'))
    assert [arm.link for arm in plan.arms] == [link_of(rtt, rate) for rtt in (0.001, 0.02) for rate in (1e7, 1e9)]
    assert plan.arms[0].name == "urllib3[rtt=1ms, bandwidth=10mbit]"
    assert plan.arms[0].axes == {"rtt": "1ms", "bandwidth": "10mbit"}
    assert {arm.workload for arm in plan.arms} == {"w"}
    assert len(plan.links) == 4


def test_an_arm_has_its_own_link_or_that_of_its_workload(mine):
    text = LINKED + '[common]\nbandwidth = "10mbit"\n[arms.far]\nstrategy = "pycurl"\nrtt = ["80ms", "90ms"]\n'
    near, *far = read_plan(mine(text)).arms
    assert (near.name, near.link) == ("urllib3", Link(0.0, 1e7))
    assert [(arm.name, arm.sweep) for arm in far] == [("far[rtt=80ms]", "far"), ("far[rtt=90ms]", "far")]
    assert far[1].link == Link(0.09, 1e7)
