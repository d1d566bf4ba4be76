"""The home of containers: servers under addresses of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from clientlab.conformance.server import counting_server
from clientlab.errors import IncompleteRun, LabError
from clientlab.testbeds.compose import ADDRESSES, ComposeTestbed
from running import gunicorn


def test_addresses_are_read_from_the_environment_and_looked_up():
    """A client is given a number: it asks no name server inside the clock."""
    testbed = ComposeTestbed({"AIOHTTP_ADDRESS": "localhost:8123", "PROXY_AIOHTTP_ADDRESS": "127.0.0.1:9123"})
    assert testbed.base_url("aiohttp", "direct") == "http://127.0.0.1:8123"
    assert testbed.address("aiohttp", "direct").port == 8123
    assert testbed.base_url("aiohttp", "proxy") == "http://127.0.0.1:9123"
    assert testbed.programs()["aiohttp_address"] == "AIOHTTP_ADDRESS=localhost:8123"
    assert testbed.programs()["flask_address"] == "FLASK_ADDRESS=flask:8000"


def test_the_counters_are_those_of_the_upstream():
    """As in the home without containers."""
    with gunicorn("aiohttp") as server:
        testbed = ComposeTestbed({"AIOHTTP_ADDRESS": f"127.0.0.1:{server.port}"})
        before = testbed.reading("aiohttp", "direct")
        server.ask("/")
        after = testbed.reading("aiohttp", "direct")
    assert after.upstream.requests - before.upstream.requests == 1
    assert (after.upstream.processes, after.proxy) == (2, None)


@pytest.mark.parametrize("name", ADDRESSES)
@pytest.mark.parametrize("text", ["flask", "flask:", ":8000", "flask:0", "flask:65536", "flask:http"])
def test_an_address_that_can_not_be_read_is_said_with_its_variable(name, text):
    """And what it should look like."""
    with pytest.raises(LabError, match=f"{name}='{text}' is no HOST:PORT; write it as {ADDRESSES[name]}"):
        ComposeTestbed({name: text})


def test_a_host_that_is_not_there_is_said_with_its_variable():
    """When it is needed first; a name of the domain .invalid never exists."""
    testbed = ComposeTestbed({"AIOHTTP_ADDRESS": "nowhere.invalid:8000"})
    with pytest.raises(IncompleteRun, match=r"AIOHTTP_ADDRESS=nowhere.invalid:8000: the host is not found"):
        testbed.base_url("aiohttp", "direct")


def test_with_tls_the_name_stays_and_the_ca_is_among_the_usual_ones(tmp_path):
    """The certificate is for the name; what it costs to load the usual ones is not hidden."""
    (tmp_path / "root.crt").write_text("OWN\n")
    testbed = ComposeTestbed({"PROXY_FLASK_TLS_ADDRESS": "caddy:9999", "PROXY_CA_FILE": str(tmp_path / "root.crt")})
    assert testbed.base_url("flask", "proxy-tls") == "https://caddy:9999"
    assert testbed.address("flask", "proxy-tls").port == 9999
    bundle = Path(testbed.ca_file("flask", "proxy-tls")).read_text()
    assert bundle.startswith("OWN\n")
    assert bundle.count("BEGIN CERTIFICATE") > 50
    assert testbed.ca_file("flask", "proxy") is None


@pytest.mark.parametrize("authority", ["", "nowhere/root.crt"])
def test_tls_without_the_proxys_ca_can_not_be_measured(authority):
    """The variable is named."""
    with pytest.raises(IncompleteRun, match=f"PROXY_CA_FILE='{authority}': .*; the route proxy-tls needs"):
        ComposeTestbed({"PROXY_CA_FILE": authority}).ca_file("aiohttp", "proxy-tls")


def test_what_containers_do_not_have_is_said():
    """An upstream or a route of another home."""
    testbed = ComposeTestbed({})
    with pytest.raises(LabError, match=r"upstream '127.0.0.1:1' by route 'direct' is not in the Compose stack"):
        testbed.base_url("127.0.0.1:1", "direct")
    with pytest.raises(LabError, match="by route 'carrier pigeon'"):
        testbed.base_url("aiohttp", "carrier pigeon")


def test_an_upstream_without_counters_can_not_be_measured():
    """It is not the lab's own."""
    with counting_server(lambda _: None) as server:
        testbed = ComposeTestbed({"AIOHTTP_ADDRESS": f"127.0.0.1:{server.port}"})
        with pytest.raises(IncompleteRun, match="/metrics does not answer"):
            testbed.reading("aiohttp", "direct")
