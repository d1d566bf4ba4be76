"""Upstreams with settings: started when a trial needs one, one at a time, on either route."""

from __future__ import annotations

import pytest

from clientlab.errors import LabError
from clientlab.testbeds.compose import check_plain
from clientlab.testbeds.local import LocalTestbed, check_upstreams
from clientlab.testbeds.scrape import get
from clientlab.testbeds.server_process import WorkerCounts
from clients.testbeds.test_local import all_gone, family
from running import caddy_path

SMALL = WorkerCounts(flask=1, aiohttp=1, threads=4)
SPECIAL = {
    "flask?server=development": "werkzeug's development server, a thread and a connection for each request",
    "flask?workers=2&worker_class=sync": "gunicorn sync, 2 workers, a connection for each request",
    "aiohttp?workers=2": "gunicorn uvloop, 2 workers",
}


@pytest.mark.real
@pytest.mark.release
def test_each_is_served_as_its_settings_say_and_none_beside_another(tmp_path):
    """Workers, counters and logs are its own; the plain upstream runs all the time."""
    with LocalTestbed([*SPECIAL, "aiohttp"], ["direct"], tmp_path, SMALL) as testbed:
        plain = family()
        assert testbed.programs() == {**SPECIAL, "aiohttp": "gunicorn uvloop, 1 workers"}
        for upstream in SPECIAL:
            testbed.serve(upstream)
            started = [one for one in family() if one not in plain]
            testbed.serve(upstream)
            assert [one for one in family() if one not in plain] == started
            workers = 2 if "workers" in upstream else 1
            assert len(started) == (workers + 1 if "workers" in upstream else 1)
            assert testbed.reading(upstream, "direct").upstream.processes == workers
            testbed.serve("aiohttp")
            assert testbed.reading("aiohttp", "direct").upstream.processes == 1
    assert all_gone(started)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([
        "aiohttp.log", "flask-server-development.log", "flask-workers-2-worker-class-sync.log", "aiohttp-workers-2.log",
    ])  # fmt: skip


@pytest.mark.real
def test_the_proxy_leads_to_the_one_that_runs(tmp_path):
    """Two of one framework in turn, at one address behind Caddy."""
    caddy_path()
    asked = ["flask?workers=2", "flask?server=development"]
    with LocalTestbed(asked, ["proxy"], tmp_path, SMALL) as testbed:
        for upstream in asked:
            testbed.serve(upstream)
            before = testbed.reading(upstream, "proxy").upstream.requests
            assert get(testbed.endpoint(upstream, "proxy"), "/todos/1")[0] == 200
            assert testbed.reading(upstream, "proxy").upstream.requests == before + 1


def test_the_proxy_can_not_lead_to_two_at_once():
    """A plain upstream and one with settings need a run each, unless the latter is called directly."""
    check_upstreams({("flask", "proxy"), ("flask?workers=2", "direct")})
    with pytest.raises(LabError, match=r"flask\?workers=2"):
        check_upstreams({("flask", "direct"), ("flask?workers=2", "proxy")})


def test_containers_have_the_plain_ones_only():
    """The first that they do not have is named."""
    check_plain(["flask", "aiohttp"])
    with pytest.raises(LabError, match=r"flask\?workers=4"):
        check_plain(["aiohttp", "flask?workers=4"])
