"""Settings in the names of upstreams and strategies."""

from __future__ import annotations

import pytest

from clientlab.conformance.load_checks import Gate
from clientlab.conformance.server import counting_server, ok
from clientlab.errors import LabError
from clientlab.settings import find_upstream
from clientlab.workload.workload import make_workload
from clients.measured import measure


def test_the_settings_of_an_upstream_decide_how_it_is_served():
    plain = find_upstream("flask")
    special = find_upstream("flask?workers=4&threads=8")
    assert plain.special is False
    assert plain.server == "gunicorn"
    assert plain.workers is None
    assert plain.threads is None
    assert special.framework == "flask"
    assert special.special
    assert special.workers == 4
    assert special.threads == 8
    assert find_upstream("aiohttp?server=development&any_path=true").development
    idle = find_upstream("aiohttp?keep_alive=5&proxy_keep_alive=4&max_requests=1000")
    assert idle.keep_alive == 5
    assert idle.max_requests == 1000
    assert idle.changes_proxy
    assert idle.proxy_times == {"PROXY_IDLE": "300s", "PROXY_KEEP_ALIVE": "4s"}
    assert not special.changes_proxy


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("nginx", "flask, aiohttp"),
        ("flask?worker=2", "worker"),
        ("flask?workers=four", "workers=four"),
        ("flask?threads=5000", "threads=5000"),
        ("flask?worker_class=gevent", "worker_class=gevent"),
        ("flask?server=development&workers=2", "workers"),
        ("flask?server=development&keep_alive=2", "development server .* keep_alive"),
        (
            "aiohttp?server=development&max_requests=9",
            "development server .* max_requests",
        ),
        ("flask?worker_class=sync&keep_alive=2", "sync .* keep_alive"),
        ("flask?worker_class=sync&threads=2", "sync .* threads"),
        ("aiohttp?worker_class=sync", "worker_class"),
        ("aiohttp?keep_alive=0", "keep_alive=0"),
        ("aiohttp?proxy_idle=5s", "proxy_idle=5s"),
        ("aiohttp?any_path=1", "any_path=1"),
        ("flask?", "flask"),
    ],
)
def test_an_unknown_upstream_or_setting_is_refused(name, names):
    with pytest.raises(LabError, match=names):
        find_upstream(name)


@pytest.mark.real
@pytest.mark.parametrize(
    ("strategy", "requests", "concurrency", "connections", "in_flight"),
    [
        ("aiohttp?force_close=true", 5, 1, 5, 1),
        ("requests-session@threads?pool=2&pool_block=true", 24, 6, None, 2),
        ("requests-session@threads?max_workers=3", 24, 6, None, 3),
        ("sync_multiprocess?processes=3", 24, 6, None, 3),
        (
            "httpx-async@gather?library_defaults=true",
            20,
            4,
            None,
            20,
        ),  # the lab does not limit gather
        ("aiohttp@workers?loop=uvloop", 12, 4, None, 4),
    ],
)
def test_a_server_sees_the_settings_of_a_strategy(
    strategy, requests, concurrency, connections, in_flight
):
    """The server holds the first requests until `in_flight` of them have arrived."""
    gate = Gate(in_flight)
    with counting_server(lambda _: gate.wait() or ok(), 0.01) as server:
        measured = measure(
            strategy,
            make_workload(requests=requests, concurrency=concurrency, warmup=0),
            server.url,
        )
        assert measured.samples.errors == {}
        assert measured.numbers == list(range(requests))
        assert measured.outcome.connections_begun == server.connections
        assert server.connections == (connections or server.connections)
        assert server.most_in_flight == in_flight
