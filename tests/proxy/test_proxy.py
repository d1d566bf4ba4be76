"""The proxy: Caddy in front of both upstreams."""

from __future__ import annotations

import contextlib
import json
import ssl
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx
import pytest

from running import (
    FRAMEWORKS,
    ROOT,
    Server,
    ask,
    caddy,
    caddy_path,
    free_ports,
    gunicorn,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.real

CADDYFILE = str(ROOT / "proxy/Caddyfile")
ACCEPTED = "mockupstream_connections_accepted_total"


class Routed(NamedTuple):
    """An upstream and the sites of the proxy before it, without and with TLS."""

    upstream: Server
    site: Server
    secure: Server


@pytest.fixture(scope="module")
def both() -> Iterator[dict[str, Routed]]:
    """Both upstreams, and one Caddy in front of them."""
    with (
        gunicorn("flask", threads="40") as flask,
        gunicorn("aiohttp") as aiohttp,
        caddy(flask.port, aiohttp.port) as sites,
    ):
        yield {
            "flask": Routed(flask, sites.flask, sites.flask_tls),
            "aiohttp": Routed(aiohttp, sites.aiohttp, sites.aiohttp_tls),
        }


@pytest.fixture
def routed(both: dict[str, Routed]) -> Routed:
    return both["aiohttp"]


def test_the_file_is_valid_and_formatted(tmp_path: Path) -> None:
    command = [
        caddy_path(),
        "validate",
        "--adapter",
        "caddyfile",
        "--config",
        CADDYFILE,
    ]
    places = {"XDG_DATA_HOME": str(tmp_path / "data"), "HOME": str(tmp_path / "home")}
    subprocess.run(command, check=True, capture_output=True, env=places)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    formatted = subprocess.run(
        [caddy_path(), "fmt", CADDYFILE], check=False, capture_output=True, text=True
    )
    assert formatted.stdout == Path(CADDYFILE).read_text()


def test_the_environment_decides_how_long_idle_connections_are_kept(
    tmp_path: Path,
) -> None:
    command = [caddy_path(), "adapt", "--adapter", "caddyfile", "--config", CADDYFILE]
    times = {"PROXY_IDLE": "5s", "PROXY_KEEP_ALIVE": "7s", "HOME": str(tmp_path)}
    servers = json.loads(
        subprocess.run(command, check=True, capture_output=True, env=times).stdout
    )["apps"]["http"]
    assert {server["idle_timeout"] for server in servers["servers"].values()} == {
        5_000_000_000
    }
    assert '"idle_timeout": 7000000000' in json.dumps(servers)


def test_a_repeated_burst_opens_no_new_connections(routed: Routed) -> None:
    with contextlib.ExitStack() as stack:
        connections = [
            stack.enter_context(contextlib.closing(routed.site.connect()))
            for _ in range(64)
        ]
        before = routed.upstream.metric(ACCEPTED)
        with ThreadPoolExecutor(64) as pool:
            for _ in range(4):
                statuses = pool.map(
                    lambda connection: ask(connection, "/?delay=100ms").status,
                    connections,
                )
                assert list(statuses) == [200] * 64
        assert routed.upstream.metric(ACCEPTED) - before < 2 * 64


def test_requests_arrive_as_they_were_sent(routed: Routed) -> None:
    """Method, body and the client's headers are passed on, and Caddy adds no
    Accept-Encoding.
    """
    body = b"x" * 100_000
    with contextlib.closing(routed.site.connect()) as connection:
        connection.putrequest("PUT", "/echo", skip_accept_encoding=True)
        connection.putheader("Content-Length", str(len(body)))
        connection.putheader("X-Own", "1")
        connection.endheaders(body)
        document = json.loads(connection.getresponse().read())
    assert document["method"] == "PUT"
    assert document["body"]["length"] == len(body)
    assert document["headers"]["x-own"] == "1"
    assert "accept-encoding" not in document["headers"]
    assert "x-forwarded-for" in document["headers"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_responses_arrive_as_they_were_sent(
    both: dict[str, Routed], framework: str
) -> None:
    routed = both[framework]
    for path in ("/?status=503", "/nope", "/?delay=61s", "/status/204", "/todos/1"):
        direct = routed.upstream.ask(path)
        proxied = routed.site.ask(path)
        assert direct.status == proxied.status
        assert direct.body == proxied.body
        assert direct.headers["Server-Timing"] == proxied.headers["Server-Timing"]


def test_a_drip_is_not_held_back(routed: Routed) -> None:
    with contextlib.closing(routed.site.connect()) as connection:
        connection.request("GET", "/drip?duration=1&numbytes=2")
        response = connection.getresponse()
        assert response.read(1) == b"*"
        assert routed.upstream.metric("mockupstream_requests_in_flight") == 1
        assert response.read() == b"*"


@pytest.mark.parametrize("http2", [False, True])
def test_sites_with_tls_speak_the_requested_version(
    routed: Routed, *, http2: bool
) -> None:
    """Each name of the proxy has a certificate of its own CA."""
    context = ssl.create_default_context(cafile=str(routed.secure.ca_file))
    for name in ("127.0.0.1", "localhost", "proxy.test"):
        headers = {"Host": f"{name}:{routed.secure.port}"}
        url = f"https://127.0.0.1:{routed.secure.port}/todos/7"
        with httpx.Client(http2=http2, verify=context) as client:
            response = client.get(
                url, headers=headers, extensions={"sni_hostname": name}
            )
        assert response.status_code == 200
        assert response.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
        assert response.content == routed.upstream.ask("/todos/7").body
        assert "Alt-Svc" not in response.headers


def test_an_upstream_that_is_down_is_502(both: dict[str, Routed]) -> None:
    with caddy(*free_ports(1), both["aiohttp"].upstream.port) as (site, other, *_):
        assert site.ask("/").status == 502
        assert other.ask("/").status == 200
