"""Profiles of py-spy, summed up."""

from __future__ import annotations

import json

import pytest

from clientlab.analysis import profiles

SITE = "/x/lib/python3.12/site-packages"
FRAMES = [
    {"name": "main", "file": "/y/clientlab/trial/process.py"},
    {"name": "Pool.acquire", "file": f"{SITE}/httpcore/_async/pool.py"},
    {"name": "getpeername", "file": "/x/lib/python3.12/asyncio/trsock.py"},
    {"name": "parse", "file": f"{SITE}/h11/_connection.py"},
    {"name": "process 7: python", "file": ""},
]


def profile(tmp_path, samples, weights):
    path = tmp_path / "profile.json"
    document = {
        "shared": {"frames": FRAMES},
        "profiles": [{"samples": samples, "weights": weights}],
    }
    path.write_text(json.dumps(document))
    return profiles.read_profile(path)


@pytest.fixture
def stacks(tmp_path):
    """60 % in the pool, half of it in what it calls; 30 % in the parser."""
    samples = [[4, 0, 1], [4, 0, 1, 2], [4, 0, 3], [4, 0]]
    return profile(tmp_path, samples, [0.30, 0.30, 0.30, 0.10])


def test_shares_are_those_of_the_innermost_function_and_of_all_on_the_stack(stacks):
    assert profiles.shares_by_package(stacks) == pytest.approx(
        {"httpcore": 0.3, "asyncio": 0.3, "h11": 0.3, "clientlab": 0.1}
    )
    functions = profiles.shares_by_function(stacks)
    pool = functions[profiles.Frame("Pool.acquire", "httpcore")]
    assert (pool.own, pool.total) == pytest.approx((0.3, 0.6))


def test_the_main_function_is_the_innermost_one_with_most_samples(stacks):
    assert profiles.find_main_function(stacks) == ("Pool.acquire", "httpcore")


def test_no_function_stands_out_if_none_has_most_samples(tmp_path):
    stacks = profile(tmp_path, [[0, 1], [0, 2], [0, 3]], [1, 1, 1])
    assert profiles.find_main_function(stacks) is None


def test_a_function_that_takes_most_of_the_time_itself_is_found_on_all_paths(tmp_path):
    samples = [[0, 1, 2], [0, 3, 2], [0, 3]]
    stacks = profile(tmp_path, samples, [0.4, 0.3, 0.3])
    assert profiles.find_main_function(stacks) == ("getpeername", "asyncio")


def test_an_inner_function_that_holds_nearly_all_is_found(tmp_path):
    stacks = profile(tmp_path, [[0, 3, 1, 2], [0, 3, 1], [0, 3]], [0.45, 0.35, 0.2])
    assert profiles.find_main_function(stacks) == ("Pool.acquire", "httpcore")


def test_a_function_that_only_calls_other_packages_does_not_stand_out(tmp_path):
    stacks = profile(tmp_path, [[0, 1], [0, 1, 2], [0, 1, 3]], [0.2, 0.4, 0.4])
    assert profiles.find_main_function(stacks) is None


@pytest.mark.parametrize(
    ("file", "package"),
    [
        (f"{SITE}/aiohttp/client.py", "aiohttp"),
        (f"{SITE}/six.py", "six"),
        ("/usr/lib/python3.13t/asyncio/events.py", "asyncio"),
        ("/usr/lib/python3.11/ssl.py", "ssl"),
        ("/x/libcurl-1a2b3c4d.so.4", "libcurl"),
        ("<frozen importlib._bootstrap>", "python"),
        ("", "unknown"),
    ],
)
def test_each_function_has_a_package(file, package):
    assert profiles.find_package(file) == package


def test_a_flame_graph_holds_each_function_with_its_share(stacks):
    drawn = profiles.draw_flame_graph(stacks, "a <b>")
    assert "<title>Pool.acquire (httpcore): 60.0%</title>" in drawn
    assert "a &lt;b&gt;" in drawn


def test_a_file_that_is_no_profile_is_refused(tmp_path):
    (tmp_path / "x").write_text("{}")
    with pytest.raises(ValueError, match="not a profile"):
        profiles.read_profile(tmp_path / "x")
