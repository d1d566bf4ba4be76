"""Reading counters off the upstreams' and the proxy's own pages."""

from __future__ import annotations

import pytest

from clientlab.conformance.server import counting_server, ok
from clientlab.errors import IncompleteRun
from clientlab.testbeds.scrape import Endpoint, proxy_use, upstream_use

pytestmark = pytest.mark.real


def test_the_proxy_says_how_long_it_held_requests_and_what_it_may_use():
    """Of all its sites: over TLS, another handler is the outermost."""
    name = "caddy_http_request_duration_seconds"
    page = (
        f"# TYPE {name} histogram\n"
        f'{name}_sum{{code="200",handler="reverse_proxy",server="a"}} 1.5\n'
        f'{name}_sum{{code="502",handler="reverse_proxy",server="a"}} 0.25\n'
        f'{name}_sum{{code="200",handler="subroute",server="b"}} 2.0\n'
        "# TYPE go_sched_gomaxprocs_threads gauge\ngo_sched_gomaxprocs_threads 3\n"
    )
    with counting_server(lambda _: ok(page.encode())) as server:
        use = proxy_use(Endpoint("127.0.0.1", server.port))
    assert (use.held_seconds, use.cores) == (3.75, 3)


@pytest.mark.parametrize("answer", [ok(status="500 Sorry"), None, b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_counters_that_cannot_be_read_end_the_run(answer):
    """A run ends if counters cannot be read, and the message names their address."""
    with counting_server(lambda _: answer) as server:
        endpoint = Endpoint("127.0.0.1", server.port)
        with pytest.raises(IncompleteRun, match=endpoint.url):
            upstream_use(endpoint)
    with pytest.raises(IncompleteRun, match=endpoint.url):
        upstream_use(endpoint)
