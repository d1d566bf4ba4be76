"""The Compose testbed: servers at addresses of the environment, and the link before
them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from clientlab.conformance.server import counting_server, ok
from clientlab.errors import IncompleteRun, LabError, ServerLost
from clientlab.testbeds.compose import ComposeTestbed, check_link, check_plain
from clientlab.trial.context import PeerAddress
from clientlab.workload.values import Link
from clientlab.workload.workload import make_workload
from running import caddy, gunicorn


def test_addresses_are_read_from_the_environment_and_resolved():
    """Clients get an IP address, so that they do not ask a name server during a
    request.
    """
    testbed = ComposeTestbed(
        {"AIOHTTP_ADDRESS": "localhost:8123", "PROXY_AIOHTTP_ADDRESS": "127.0.0.1:9123"}
    )
    assert testbed.address("aiohttp", "direct") == PeerAddress("http://127.0.0.1:8123")
    assert testbed.address("aiohttp", "proxy") == PeerAddress("http://127.0.0.1:9123")
    assert testbed.programs()["aiohttp_address"] == "AIOHTTP_ADDRESS=localhost:8123"
    assert testbed.programs()["flask_address"] == "FLASK_ADDRESS=flask:8000"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("FLASK_ADDRESS", "flask"),
        ("FLASK_ADDRESS", ":8000"),
        ("LINK_FLASK_ADDRESS", "flask:65536"),
        ("LINK_RTT", "35"),
    ],
)
def test_an_invalid_variable_is_named(name, text):
    with pytest.raises(LabError, match=f"{name}='?{text}"):
        ComposeTestbed({name: text})


def test_the_stack_has_the_link_of_its_environment_or_refuses_one():
    """Clients call the link's container, and counters are read from the servers
    themselves.
    """
    environment = {
        "LINK_RTT": "35ms",
        "LINK_BANDWIDTH": "20mbit",
        "FLASK_ADDRESS": "127.0.0.1:7000",
        "LINK_FLASK_ADDRESS": "127.0.0.1:7001",
    }
    testbed = ComposeTestbed(environment)
    ((link, linked),) = testbed.links().items()
    assert link == Link(0.035, 2e7)
    assert linked.address("flask", "direct") == PeerAddress("http://127.0.0.1:7001")
    assert testbed.address("flask", "direct") == PeerAddress("http://127.0.0.1:7000")
    check_link(environment, [link])
    with pytest.raises(LabError, match="1 ms"):
        check_link(environment, [Link(0.001)])
    assert ComposeTestbed({"LINK_RTT": "", "LINK_BANDWIDTH": ""}).links() == {}
    check_link({}, [])
    with pytest.raises(LabError, match="20 ms"):
        check_link({}, [Link(0.02)])


def test_the_containers_have_no_upstream_with_settings():
    check_plain(["flask", "aiohttp"])
    with pytest.raises(LabError, match="keep_alive=5"):
        check_plain(["aiohttp", "aiohttp?keep_alive=5"])


@pytest.mark.real
def test_with_tls_the_name_stays_and_the_proxys_ca_is_among_the_usual_ones():
    with gunicorn("aiohttp") as upstream, caddy(upstream.port, upstream.port) as sites:
        metrics = f"127.0.0.1:{sites.metrics.port}"
        testbed = ComposeTestbed(
            {"PROXY_FLASK_TLS_ADDRESS": "caddy:9999", "PROXY_METRICS_ADDRESS": metrics}
        )
        address = testbed.address("flask", "proxy-tls")
        assert address.url == "https://caddy:9999"
        bundle = Path(address.ca_file).read_text()
        assert bundle.startswith(sites.aiohttp_tls.ca_file.read_text().rstrip())
        assert bundle.count("BEGIN CERTIFICATE") > 50
        with pytest.raises(IncompleteRun, match="CA"):
            ComposeTestbed(
                {"PROXY_METRICS_ADDRESS": f"127.0.0.1:{upstream.port}"}
            ).address("aiohttp", "proxy-tls")
    with pytest.raises(ServerLost, match=metrics):
        ComposeTestbed({"PROXY_METRICS_ADDRESS": metrics}).address(
            "aiohttp", "proxy-tls"
        )


@pytest.mark.real
def test_a_health_check_names_the_server_that_does_not_answer():
    with (
        counting_server() as upstream,
        counting_server(lambda _: ok(status="502 Bad Gateway")) as proxy,
    ):
        testbed = ComposeTestbed(
            {
                "AIOHTTP_ADDRESS": f"127.0.0.1:{upstream.port}",
                "PROXY_AIOHTTP_ADDRESS": f"127.0.0.1:{proxy.port}",
            }
        )
        assert testbed.trouble("aiohttp", "direct", make_workload()) is None
        assert (
            testbed.trouble("aiohttp", "proxy", make_workload())
            == f"{proxy.url}/healthz answers 502"
        )
    assert testbed.trouble("aiohttp", "proxy", make_workload()).startswith(
        f"{upstream.url}/healthz "
    )
    with pytest.raises(ServerLost, match="/healthz"):
        testbed.serve("aiohttp")
