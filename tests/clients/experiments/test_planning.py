"""The arms of an experiment: every combination of what its file names."""

from __future__ import annotations

from pathlib import Path

import pytest

from clientlab.experiments.file import read_plan
from clientlab.results.plan import EnvironmentSpec
from clientlab.workload.values import Link, make_link
from clients.plans import checked_plan

HEAD = (
    'question = "Which?"\n[workloads.w]\nrequests = 50\n[workloads.x]\nrequests = 10\n'
)
ARM = HEAD + '[arms.it]\nstrategy = "aiohttp@semaphore"\nworkload = "w"\n'
CLAIM = '[claims.so]\ntext = "It is so"\nkind = "less"\n'


def test_lists_of_an_arm_are_axes_too(mine):
    arms = checked_plan(
        mine(
            ARM
            + 'concurrency = [5, 9]\nsettings = { pool = [1, 2], loop = "asyncio" }\n'
        )
    ).arms
    assert [arm.axes for arm in arms] == [
        {"concurrency": c, "pool": p} for c in (5, 9) for p in (1, 2)
    ]
    assert arms[0].strategy == "aiohttp@semaphore?pool=1&loop=asyncio"
    assert arms[0].name == "it[concurrency=5, pool=1]"


def test_names_hide_the_credentials_of_a_path_that_is_an_axis(mine):
    text = ARM.replace("requests = 50", 'path = ["/a?token=SECRET", "/b"]')
    plan = checked_plan(mine(text)).masked()
    assert [arm.name for arm in plan.arms] == ["it[path=/a?token=…]", "it[path=/b]"]
    assert "SECRET" not in plan.model_dump_json()


def test_an_arm_is_combined_with_everything_that_it_does_not_choose(mine):
    text = 'routes = ["direct", "proxy"]\n' + HEAD + '[arms.it]\nstrategy = "urllib3"\n'
    text += (
        '[arms.other]\nstrategy = "pycurl"\nworkload = "x"\nroute = "direct"\nupstream'
        ' = "flask"\n'
    )
    arms = checked_plan(mine(text)).arms
    assert [arm.name for arm in arms] == [
        "it (w, direct)",
        "it (w, proxy)",
        "it (x, direct)",
        "it (x, proxy)",
        "other",
    ]
    assert {arm.upstream for arm in arms if arm.label == "it"} == {"aiohttp"}
    assert arms[-1].upstream == "flask"
    assert arms[-1].route == "direct"
    assert arms[-1].workload == "x"


def test_common_fields_are_those_of_every_workload_without_its_own(mine):
    text = ARM.replace('workload = "w"\n', "") + "[common]\nrequests = 3\nwarmup = 1\n"
    workloads = checked_plan(mine(text)).workloads
    assert {
        name: (w.load.requests, w.load.warmup) for name, w in workloads.items()
    } == {
        "w": (50, 1),
        "x": (10, 1),
    }


def test_claims_name_arms_of_a_sweep_by_its_ends(mine):
    """They then also hold in the quick form, which has other points."""
    sweep = ARM + "settings = { semaphore = [1, 5, 9] }\n"
    claims = (
        CLAIM + 'a = "it[first]"\nb = "it[last]"\n[claims.best]\ntext = "!"\nkind ='
        ' "optimum"\nsweep = "it"\n'
    )
    quick = "[quick.arms.it.settings]\nsemaphore = [2, 3, 4]\n"
    full, short = (
        checked_plan(mine(sweep + claims + quick), quick=quick_)
        for quick_ in (False, True)
    )
    less, best = full.claims
    assert less.a == "it[semaphore=1]"
    assert less.b == "it[semaphore=9]"
    assert best.arms == ["it[semaphore=1]", "it[semaphore=5]", "it[semaphore=9]"]
    assert short.claims[0].b == "it[semaphore=4]"
    assert short.shortened == ["arms.it.settings.semaphore: [1, 5, 9] → [2, 3, 4]"]


@pytest.mark.parametrize(
    "requirement",
    [
        "httpx2==2.16.2",
        "httpx[http2] >= 0.28",
        "httpx~=0.28.0",
        "httpx @ git+https://example.org/httpx@faster",
        "git+https://example.org/httpx@faster",
        "https://example.org/httpx-1.0-py3-none-any.whl",
    ],
)
def test_an_environment_of_the_command_line_may_be_a_requirement(requirement, mine):
    (spec,) = checked_plan(
        mine(ARM), environments={"new": requirement}
    ).environments.values()
    assert spec == EnvironmentSpec(requirements=[requirement])


@pytest.mark.parametrize(
    "path", ["venvs/new", "httpx2", "~/a==b", "./a==b", "/a@b", "a==b"]
)
def test_other_environments_of_the_command_line_are_paths(
    path, mine, monkeypatch, tmp_path
):
    """A name without a version is a folder, since a mistyped path must not install a
    package of that name.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    Path("a==b").mkdir()
    (spec,) = checked_plan(mine(ARM), environments={"new": path}).environments.values()
    assert spec == EnvironmentSpec(
        folder=str(Path(path.replace("~", "/home/me")).absolute())
    )


def test_an_environment_of_the_command_line_may_be_a_folder_of_sources(
    mine, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    Path("head").mkdir()
    Path("head/pyproject.toml").touch()
    (spec,) = checked_plan(
        mine(ARM), environments={"new": "head"}
    ).environments.values()
    assert spec == EnvironmentSpec(requirements=[str(tmp_path / "head")])


LINKED = 'question = "Which?"\nstrategies = ["urllib3"]\n[workloads.w]\nrequests = 5\n'


def test_without_a_key_there_is_no_link_and_a_time_of_0_is_one(mine):
    (arm,) = read_plan(mine(LINKED)).arms
    assert arm.link is None
    (arm,) = read_plan(mine(LINKED + '[common]\nrtt = "0ms"\n')).arms
    assert arm.name == "urllib3"
    assert arm.link == Link(0.0)
    assert arm.axes == {}


def test_a_list_of_times_or_rates_is_an_axis(mine):
    """Each arm has its place in its name, and all do one workload, so that their
    requests are equal.
    """
    plan = read_plan(
        mine(
            LINKED
            + '[common]\nrtt = ["1ms", "20ms"]\nbandwidth = ["10mbit", "1gbit"]\n'
        )
    )
    assert [arm.link for arm in plan.arms] == [
        make_link(rtt, rate) for rtt in (0.001, 0.02) for rate in (1e7, 1e9)
    ]
    assert plan.arms[0].name == "urllib3[rtt=1ms, bandwidth=10mbit]"
    assert plan.arms[0].axes == {"rtt": "1ms", "bandwidth": "10mbit"}
    assert {arm.workload for arm in plan.arms} == {"w"}
    assert len(plan.links) == 4


def test_an_arm_has_its_own_link_or_that_of_its_workload(mine):
    text = (
        LINKED
        + '[common]\nbandwidth = "10mbit"\n[arms.far]\nstrategy = "pycurl"\nrtt ='
        ' ["80ms", "90ms"]\n'
    )
    near, *far = read_plan(mine(text)).arms
    assert near.name == "urllib3"
    assert near.link == Link(0.0, 1e7)
    assert [(arm.name, arm.sweep) for arm in far] == [
        ("far[rtt=80ms]", "far"),
        ("far[rtt=90ms]", "far"),
    ]
    assert far[1].link == Link(0.09, 1e7)


IN_ENVIRONMENTS = """
question = "Which?"
strategies = ["http.client"]
arms.pinned = {{ strategy = "http.client@threads", environment = "old" }}
environments.old = {{ python = "3.13", requirements = ["httpx==0.27.2"] }}
environments.new = {{ folder = "~/new" }}
workloads.w = {{ concurrency = {} }}
"""


def test_an_experiment_has_environments_and_an_arm_may_choose_one(mine):
    """As it may choose an upstream: then its name has no environment."""
    plan = read_plan(mine(IN_ENVIRONMENTS.format(1)))
    assert {arm.name: (arm.label, arm.environment) for arm in plan.arms} == {
        "http.client in old": ("http.client in old", "old"),
        "http.client in new": ("http.client in new", "new"),
        "pinned": ("pinned", "old"),
    }
    assert plan.environments["old"].requirements == ["httpx==0.27.2"]
    assert plan.environments["new"].folder == str(Path("~/new").expanduser())
    swept = read_plan(mine(IN_ENVIRONMENTS.format([1, 2, 3]))).arms
    assert swept[4].name == "http.client[concurrency=2] in new"
    assert swept[4].sweep == "http.client in new"


def test_each_server_has_its_own_arms_in_one_group_and_an_arm_may_choose_one(mine):
    text = (
        'servers = { base = "http://127.0.0.1:1", head = "http://127.0.0.1:2/x" }\n'
        + LINKED
    )
    text += '[arms.it]\nstrategy = "pycurl"\nserver = "head"\n'
    assert {
        arm.name: (arm.label, arm.server, arm.upstream)
        for arm in read_plan(mine(text)).arms
    } == {
        "urllib3 at base": ("urllib3 at base", "base", "own"),
        "urllib3 at head": ("urllib3 at head", "head", "own"),
        "it": ("it", "head", "own"),
    }
