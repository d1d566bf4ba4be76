"""Upstreams with settings: started when a trial needs one, one at a time, on either route."""

from __future__ import annotations

import pytest

from clientlab.errors import LabError
from clientlab.testbeds.local import LocalTestbed, check_upstreams
from clientlab.testbeds.scrape import get
from clientlab.testbeds.server_process import WorkerCounts
from running import caddy_path

SMALL = WorkerCounts(flask=1, aiohttp=1, threads=4)
SPECIAL = {
    "flask?workers=2&worker_class=sync": "gunicorn sync, 2 workers, a connection for each request",
    "flask?server=development": "werkzeug's development server, a thread and a connection for each request",
}


@pytest.mark.real
def test_each_is_served_as_its_settings_say_and_the_proxy_leads_to_it(tmp_path):
    """None runs beside another; each has a log of its own."""
    caddy_path()
    with LocalTestbed(list(SPECIAL), ["proxy"], tmp_path, SMALL) as testbed:
        assert testbed.programs().items() >= SPECIAL.items()
        for upstream, workers in zip(SPECIAL, (2, 1), strict=True):
            testbed.serve(upstream)
            before = testbed.reading(upstream, "proxy").upstream
            assert before.processes == workers
            assert get(testbed.endpoint(upstream, "proxy"), "/todos/1")[0] == 200
            assert testbed.reading(upstream, "proxy").upstream.requests == before.requests + 1
    logs = {"flask-server-development.log", "flask-workers-2-worker-class-sync.log"}
    assert logs < {path.name for path in tmp_path.iterdir()}


def test_the_proxy_can_not_lead_to_two_at_once():
    check_upstreams({("flask", "proxy"), ("flask?workers=2", "direct")})
    with pytest.raises(LabError, match=r"flask\?workers=2"):
        check_upstreams({("flask", "direct"), ("flask?workers=2", "proxy")})
