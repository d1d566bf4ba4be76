"""Arms: what an experiment's file names, multiplied out, and what can't be."""

from __future__ import annotations

import pytest

from clientlab.errors import LabError
from clientlab.experiments.file import read_experiment

HEAD = 'question = "Which?"\n[workloads.w]\nrequests = 50\n[workloads.x]\nrequests = 10\n'
ARM = HEAD + '[arms.it]\nstrategy = "aiohttp@semaphore"\nworkload = "w"\n'
CLAIM = '[claims.so]\ntext = "It is so"\nkind = "less"\n'


@pytest.fixture
def read(tmp_path):
    """The plan of a file of this text; as `run` does, all of it is checked."""

    def call(text: str, *, quick: bool = False):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return read_experiment(path, quick=quick).checked_plan()

    return call


def test_a_list_in_a_workload_is_an_axis(read):
    """An arm for each combination; they share a sweep and a group, and each has its workload."""
    found = read(
        'question = "?"\nstrategies = ["urllib3@threads"]\n[workloads.w]\nconcurrency = [2, 4]\ndelay = ["1ms", "2ms"]\n'  # noqa: E501
    )
    arms = found.arms
    assert [arm.axes for arm in arms] == [
        {"concurrency": c, "delay": d} for c in (2, 4) for d in ("1ms", "2ms")
    ]  # fmt: skip
    assert {(arm.sweep, arm.group) for arm in arms} == {("urllib3@threads", "w")}
    assert arms[1].name == arms[1].label == "urllib3@threads[concurrency=2, delay=2ms]"
    workloads = found.workloads
    assert [(workloads[arm.workload].concurrency, str(workloads[arm.workload].delay)) for arm in arms] == [
        (2, "1ms"), (2, "2ms"), (4, "1ms"), (4, "2ms"),
    ]  # fmt: skip


def test_lists_of_an_arm_are_axes_too(read):
    """Its concurrency, and settings of its strategy; one value is none."""
    arms = read(ARM + 'concurrency = [5, 9]\nsettings = { pool = [1, 2], loop = "asyncio" }\n').arms
    assert [arm.axes for arm in arms] == [{"concurrency": c, "pool": p} for c in (5, 9) for p in (1, 2)]
    assert arms[0].strategy == "aiohttp@semaphore?pool=1&loop=asyncio"
    assert arms[0].name == "it[concurrency=5, pool=1]"


def test_an_arm_with_a_concurrency_of_its_own_stays_in_its_group(read):
    """It is compared with the others of its workload."""
    (arm,) = read(ARM + "concurrency = 7\n").arms
    assert (arm.name, arm.group, arm.workload, arm.axes, arm.sweep) == ("it", "w", "w[concurrency=7]", {}, None)


def test_an_arm_does_with_all_what_it_does_not_name(read):
    """Both workloads and both routes, told apart by their names; another arm's own upstream is its own."""
    text = 'routes = ["direct", "proxy"]\n' + HEAD + '[arms.it]\nstrategy = "urllib3"\n'
    arms = read(text + '[arms.other]\nstrategy = "pycurl"\nworkload = "x"\nroute = "direct"\nupstream = "flask"\n').arms
    assert [arm.name for arm in arms] == ["it (w, direct)", "it (w, proxy)", "it (x, direct)", "it (x, proxy)", "other"]
    assert {arm.upstream for arm in arms if arm.label == "it"} == {"aiohttp"}
    assert (arms[-1].upstream, arms[-1].route, arms[-1].workload) == ("flask", "direct", "x")


def test_common_fields_are_those_of_every_workload_without_its_own(read):
    """A field outside the workloads applies to every workload that does not set it."""
    workloads = read(ARM.replace('workload = "w"\n', "") + "[common]\nrequests = 3\nwarmup = 1\n").workloads
    assert {name: (w.requests, w.warmup) for name, w in workloads.items()} == {"w": (50, 1), "x": (10, 1)}


def test_claims_name_arms_of_a_sweep_by_its_ends(read):
    """So that they hold in the quick form, whose places are others."""
    sweep = ARM + "settings = { semaphore = [1, 5, 9] }\n"
    claims = CLAIM + 'a = "it[first]"\nb = "it[last]"\n[claims.best]\ntext = "!"\nkind = "optimum"\nsweep = "it"\n'
    quick = "[quick.arms.it.settings]\nsemaphore = [2, 3, 4]\n"
    full, short = (read(sweep + claims + quick, quick=quick_) for quick_ in (False, True))
    less, best = full.claims
    assert (less.a, less.b) == ("it[semaphore=1]", "it[semaphore=9]")
    assert best.arms == ["it[semaphore=1]", "it[semaphore=5]", "it[semaphore=9]"]
    assert short.claims[0].b == "it[semaphore=4]"
    assert short.shortened == ["arms.it.settings.semaphore: [1, 5, 9] → [2, 3, 4]"]


def in_workload(fields: str) -> str:
    """The experiment with an arm, whose workload `w` has these fields instead of its number of requests."""
    return ARM.replace("requests = 50", fields)


WRONG = [
    (ARM + 'control = "maybe"\n', "line 9: arms.it.control"),
    (ARM + "[arms.two]\n", "line 9: arms.two.strategy"),
    (ARM.replace('"w"', '"v"'), "line 8: arms.it.workload: .*'v'"),
    (ARM.replace("aiohttp@", "aiohtp@"), "line 6: arms.it: .*'aiohtp@semaphore'"),
    (ARM + "settings = { nonsense = 1 }\n", "line 6: arms.it: .*'nonsense'"),
    (ARM + '[arms.two]\nstrategy = "aiohttp@semaphore"\nworkload = "w"\n', "line 9: arms.two: .*are the same"),
    (ARM + "concurrency = [3, 3]\n", "line 6: arms.it: .*twice"),
    (ARM + CLAIM + 'a = "it"\nb = "its"\n', "line 13: claims.so.b: .*'its'"),
    (ARM + CLAIM + 'a = "it"\n', "line 9: claims.so: "),
    (ARM + CLAIM + 'figure = "speed"\na = "it"\nb = "it"\n', "line 12: claims.so.figure: "),
    (ARM + CLAIM.replace("less", "ratio") + 'a = "it"\nb = "it"\nband = [2, 1]\n', "line 9: claims.so: band"),
    (ARM + CLAIM.replace("less", "optimum") + 'sweep = "it"\n', "line 12: claims.so.sweep: .*'it'"),
    ('baseline = "no"\n' + ARM, "line 1: baseline: .*'no'"),
    (in_workload("requests = [5, 5]"), "line 3: workloads.w.requests: an axis"),
    (in_workload("seed = [1, 2]"), "line 3: workloads.w.seed: "),
    (in_workload("requests = [0, 1]"), "line 3: workloads.w.requests: 0"),
    (ARM.replace("aiohttp@semaphore", "urllib3") + "concurrency = [1, 2]\n", "line 9: arms.it.concurrency: "),
    (ARM + "[common]\nwarmup = -1\n", "line 10: common.warmup: -1"),
    (ARM + "[quick.workloads.w]\nrequests = 0\n", "line 10: quick.workloads.w.requests: 0"),
    (in_workload("requests = 50\nduration = '1s'"), "line 3: workloads.w.requests and duration"),
    (ARM.replace("semaphore", "gather").replace("requests = 50", "duration = '2500ms'"),
     "line 3: workloads.w.duration: 2.5: .*'aiohttp@gather'"),
    (ARM + "[quick.workloads.v]\nrequests = 1\n", "line 9: quick.workloads.v: "),
    ("question = \n", "line 1"),
    (HEAD, "strategies: "),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_a_mistake_is_named_with_its_file_line_and_key(text, says, read):
    """An invalid file is refused in one line that names file, line and key."""
    with pytest.raises(LabError, match=says) as caught:
        read(text, quick="[quick" in text)
    assert "mine.toml: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_without_a_quick_form_is_refused_where_that_is_asked_for(read):
    """`--quick` refuses an experiment without a quick form and does not guess one."""
    with pytest.raises(LabError, match="quick"):
        read(ARM, quick=True)
