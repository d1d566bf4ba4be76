"""The external testbed: the URL of the user's own server, whether it answers, and
addresses that refuse.
"""

from __future__ import annotations

import errno
import socket
import sys

import pytest

from clientlab.conformance.server import Stall, counting_server, ok
from clientlab.errors import FieldError, LabError, ServerLost
from clientlab.testbeds import external
from clientlab.testbeds.external import ExternalServers, ExternalTarget, split_url
from clientlab.testbeds.servers import Endpoint
from clientlab.trial.context import PeerAddress
from clientlab.workload.values import Statuses
from clientlab.workload.workload import change, make_workload
from tls_servers import Authority

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    ("rest", "path"),
    [("", "/"), ("?x=1", "/?x=1"), ("/a?x=1&y={k}", "/a?x=1&y={k}"), ("/a#part", "/a")],
)
def test_a_url_has_a_server_and_a_path_with_its_query(rest, path, server):
    testbed = ExternalTarget(server.url + rest)
    assert testbed.path == path
    assert testbed.name == f"127.0.0.1:{server.port}"
    assert testbed.address == PeerAddress(server.url)
    assert testbed.address.port == server.port


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000/x",
        "//host/x",
        "ftp://host/",
        "http:///path",
        "http://host:99999/",
        "http://[nonsense]/",
    ],
)
def test_an_invalid_url_is_refused(url):
    with pytest.raises(FieldError, match=r"^url: ") as caught:
        split_url(url)
    assert repr(url) in str(caught.value)


def test_a_password_in_the_url_is_refused_and_not_repeated():
    """Some clients would send it and others not, and it would be stored in the run
    file.
    """
    with pytest.raises(LabError, match=r"^url: .*host:80") as caught:
        split_url("http://me:secret@host:80/")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("address", ["93.184.215.14", "::ffff:1.1.1.1"])
def test_load_goes_to_the_internet_only_with_permission(address, monkeypatch):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    peer = (address, 80, 0, 0) if ":" in address else (address, 80)
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda *_, **__: [(family, socket.SOCK_STREAM, 6, "", peer)],
    )
    monkeypatch.setattr(
        socket.socket, "connect_ex", lambda *_: pytest.fail("a connection was opened")
    )
    with pytest.raises(FieldError, match=address):
        ExternalTarget("http://example.test")
    tried = []
    monkeypatch.setattr(
        socket.socket, "connect_ex", lambda _, peer: tried.append(peer[0]) or 0
    )
    ExternalTarget(
        "http://example.test", permits_public=lambda addresses: addresses == [address]
    )
    assert tried == [address]


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has more than one address of loopback"
)
def test_an_address_that_refuses_connections_is_noted(server, monkeypatch):
    """With localhost, ::1 may refuse while 127.0.0.1 answers: attempts at the first
    open no connection.
    """
    peers = [(address, server.port) for address in ("127.0.0.2", "127.0.0.1")]
    both = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", peer) for peer in peers]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
    url = f"http://localhost:{server.port}"
    assert ExternalTarget(f"{url}/").address == PeerAddress(url, ("127.0.0.2",))


def test_a_ca_file_is_for_the_servers_with_tls(server, tmp_path):
    authority = Authority(tmp_path / "tls")
    with counting_server(tls=[authority.context("127.0.0.1")]) as secure:
        found = ExternalServers(
            {"a": server.url, "b": secure.url}, authority.ca_file, lambda _: False
        )
        found["b"].probe(make_workload())
    assert [found.address(name, "direct").ca_file for name in found] == [
        None,
        authority.ca_file,
    ]


@pytest.mark.parametrize(
    "answer", [ok(status="404 Not Found"), None, b"SSH-2.0-OpenSSH_9.2\r\n"]
)
def test_a_server_without_a_good_answer_is_refused_before_the_run(answer):
    with (
        counting_server(lambda _: answer) as server,
        pytest.raises(LabError, match="GET"),
    ):
        ExternalTarget(server.url).probe(make_workload())


@pytest.mark.parametrize("failure", [ok(status="503 Service Unavailable"), None])
def test_a_server_that_fails_its_first_request_is_measured(failure):
    answers = iter([failure])
    with counting_server(lambda _: next(answers, ok())) as server:
        ExternalTarget(server.url).probe(make_workload())
    assert len(server.seen) == 2


def test_the_beginning_of_an_error_and_a_missing_type_of_the_body_are_shown():
    """Without a Content-Type, an API of JSON refuses the body."""
    answer = ok(
        b'{"detail":\n "not JSON"}' + b"x" * 500, status="422 Unprocessable Content"
    )
    posted = make_workload(method="POST", body="{}")
    with counting_server(lambda _: answer) as server:
        target = ExternalTarget(f"{server.url}/?token=SECRET")
        with pytest.raises(
            FieldError, match=r'\{"detail": "not JSON"\}x{1,180}\)'
        ) as untyped:
            target.probe(change(posted, path=target.path))
        with pytest.raises(FieldError, match="422") as typed:
            target.probe(change(posted, headers={"content-type": "application/json"}))
    assert "application/octet-stream" in str(untyped.value)
    assert "Content-Type" not in str(typed.value)
    assert "SECRET" not in str(untyped.value)
    assert len(server.seen) == 6


def test_an_expected_status_is_a_good_answer():
    with counting_server(lambda _: ok(status="404 Not Found")) as server:
        ExternalTarget(server.url).probe(make_workload(expect=Statuses.parse("404")))


def test_a_server_is_healthy_if_it_begins_any_answer():
    """An error status is an answer, and so is the beginning of a body, which may be
    endless.

    Silence is not.
    """
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nsome bytes"
    answers = [
        ok(status="503 Service Unavailable"),
        head,
        Stall(b"HTTP/1.1 200 OK\r\n"),
    ]
    with counting_server(lambda seen: answers[int(seen.target[1:])]) as server:
        target = ExternalTarget(server.url)
        limits = (30.0, 30.0, 0.3)
        found = [
            target.trouble(make_workload(path=f"/{k}", timeout=limits[k]))
            for k in range(3)
        ]
    assert found[:2] == [None, None]
    assert found[2].startswith(f"127.0.0.1:{server.port} ")
    assert target.trouble(make_workload()).startswith(f"127.0.0.1:{server.port} ")


def test_a_server_that_did_not_answer_is_checked_before_the_next_trial(
    server, monkeypatch
):
    ExternalTarget(server.url).serve()
    assert server.seen == []  # it has always answered
    answers = iter([None, None, None])
    with counting_server(lambda _: next(answers, ok())) as failing:
        target = ExternalTarget(failing.url)
        assert target.trouble(make_workload()) is not None
        with monkeypatch.context() as patched:
            patched.setattr(external, "OUTAGE_SECONDS", 0.0)
            with pytest.raises(ServerLost, match="GET"):
                target.serve()
        target.serve()  # it waits: the next answer fails, too
        target.serve()
    assert len(failing.seen) == 4


def test_a_machine_without_free_ports_is_named_in_place_of_the_server(
    server, monkeypatch
):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")

    target = ExternalTarget(server.url)
    monkeypatch.setattr(socket, "create_connection", refuse)
    assert target.trouble(make_workload()).startswith(
        "this machine can open no further connection"
    )
    assert (
        Endpoint("127.0.0.1", server.port)
        .check_health()
        .startswith("this machine can open no further connection")
    )
