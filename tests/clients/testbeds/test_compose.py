"""The home of containers: servers under addresses of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from clientlab.conformance.server import counting_server, ok
from clientlab.errors import IncompleteRun, LabError, ServerLost
from clientlab.testbeds.compose import ComposeTestbed
from clientlab.workload.workload import Workload
from running import caddy, gunicorn


def test_addresses_are_read_from_the_environment_and_looked_up():
    """A client is given a number: it asks no name server inside the clock."""
    testbed = ComposeTestbed({"AIOHTTP_ADDRESS": "localhost:8123", "PROXY_AIOHTTP_ADDRESS": "127.0.0.1:9123"})
    assert testbed.base_url("aiohttp", "direct") == "http://127.0.0.1:8123"
    assert testbed.address("aiohttp", "direct").port == 8123
    assert testbed.base_url("aiohttp", "proxy") == "http://127.0.0.1:9123"
    assert testbed.programs()["aiohttp_address"] == "AIOHTTP_ADDRESS=localhost:8123"
    assert testbed.programs()["flask_address"] == "FLASK_ADDRESS=flask:8000"


@pytest.mark.parametrize("text", ["flask", ":8000", "flask:65536"])
def test_an_address_that_can_not_be_read_is_said_with_its_variable(text):
    with pytest.raises(LabError, match=f"FLASK_ADDRESS='{text}'"):
        ComposeTestbed({"FLASK_ADDRESS": text})


@pytest.mark.real
def test_with_tls_the_name_stays_and_the_proxys_ca_is_among_the_usual_ones():
    with gunicorn("aiohttp") as upstream, caddy(upstream.port, upstream.port) as sites:
        metrics = f"127.0.0.1:{sites.metrics.port}"
        testbed = ComposeTestbed({"PROXY_FLASK_TLS_ADDRESS": "caddy:9999", "PROXY_METRICS_ADDRESS": metrics})
        assert testbed.base_url("flask", "proxy-tls") == "https://caddy:9999"
        assert testbed.address("flask", "proxy-tls").port == 9999
        bundle = Path(testbed.ca_file("aiohttp", "proxy-tls")).read_text()
        assert bundle.startswith(sites.aiohttp_tls.ca_file.read_text().rstrip())
        assert bundle.count("BEGIN CERTIFICATE") > 50
        assert testbed.ca_file("flask", "proxy") is None
        other = ComposeTestbed({"PROXY_METRICS_ADDRESS": f"127.0.0.1:{upstream.port}"})
        with pytest.raises(IncompleteRun, match="CA"):
            other.ca_file("aiohttp", "proxy-tls")
    with pytest.raises(ServerLost, match=metrics):
        ComposeTestbed({"PROXY_METRICS_ADDRESS": metrics}).ca_file("aiohttp", "proxy-tls")


@pytest.mark.real
def test_a_health_check_names_the_server_that_does_not_answer():
    """The upstream first, then the proxy before it: refused, or answering an error."""
    with counting_server() as upstream, counting_server(lambda _: ok(status="502 Bad Gateway")) as proxy:
        testbed = ComposeTestbed(
            {"AIOHTTP_ADDRESS": f"127.0.0.1:{upstream.port}", "PROXY_AIOHTTP_ADDRESS": f"127.0.0.1:{proxy.port}"}
        )
        assert testbed.trouble("aiohttp", "direct", Workload()) is None
        assert testbed.trouble("aiohttp", "proxy", Workload()) == f"{proxy.url}/healthz answers 502"
        assert {seen.target for seen in upstream.seen} == {"/healthz"}
    assert testbed.trouble("aiohttp", "proxy", Workload()).startswith(f"{upstream.url}/healthz ")
    with pytest.raises(ServerLost, match="/healthz"):  # no trial begins
        testbed.serve("aiohttp")
