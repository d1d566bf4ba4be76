"""Reading counters off the upstreams' and the proxy's own pages."""

from __future__ import annotations

import pytest

from clientlab.conformance.server import counting_server, ok
from clientlab.errors import IncompleteRun
from clientlab.testbeds.scrape import Endpoint, upstream_use

pytestmark = pytest.mark.real


@pytest.mark.parametrize("answer", [ok(status="500 Sorry"), None, b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_counters_that_cannot_be_read_end_the_run(answer):
    with counting_server(lambda _: answer) as server:
        endpoint = Endpoint("127.0.0.1", server.port)
        with pytest.raises(IncompleteRun, match=endpoint.url):
            upstream_use(endpoint)
    with pytest.raises(IncompleteRun, match=endpoint.url):
        upstream_use(endpoint)
