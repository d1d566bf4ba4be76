"""The link as a program: its arguments, how it ends, and how the lab starts it again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from clientlab.errors import LabError, ServerLost
from clientlab.link.__main__ import main
from clientlab.testbeds.linked import LinkProcess
from clientlab.workload.link import Link
from clients.link.peers import PATIENCE, answer, connect, exchange, serving
from running import eventually

FORWARD = ["--forward", "127.0.0.1:9"]


@pytest.fixture(scope="module")
def server():
    """It sends as many bytes as a line asks for."""
    with serving(answer) as address:
        yield address


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--rtt", "-0.01", *FORWARD], "-0.01"),
        (["--rtt", "0.01"], "--forward"),
        (["--rtt", "10ms", "--bandwidth", "0mbit", *FORWARD], "0 bit/s"),
        (["--rtt", "0.01", "--forward", "9000"], "9000"),
        (["--rtt", "0.01", *FORWARD, "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"], "--forward"),
    ],
)
def test_a_wrong_argument_is_refused(words, named, capsys):
    """With exit code 2, before the link's process listens."""
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert named in capsys.readouterr().err


@pytest.mark.real
def test_a_port_that_is_taken_is_refused(capsys):
    """With exit code 2 and the port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit, match="2"):
            main(["--rtt", "0.01", *FORWARD, "--listen", f"127.0.0.1:{port}"])
    assert str(port) in capsys.readouterr().err


@pytest.mark.real
def test_the_process_ends_with_its_parent(server):
    """With code 0, while a connection is open."""
    host, port = server
    command = [sys.executable, "-m", "clientlab.link", "--rtt", "0", "--forward", f"{host}:{port}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        (port,) = json.loads(process.stdout.readline())["ports"]
        with connect(port) as connection:
            exchange(connection, 10)
            process.stdin.close()
            assert process.wait(PATIENCE) == 0


@pytest.mark.real
def test_a_link_that_was_killed_or_frozen_is_found_and_started_again_on_its_port(tmp_path, server):
    """A second server has a port of its own."""
    with serving(answer) as other, LinkProcess(Link(0.001), [server, other], tmp_path) as link:
        ports = [link.port_of(server), link.port_of(other)]
        assert len(set(ports)) == 2
        link.check()
        os.kill(link.pid, signal.SIGKILL)
        with pytest.raises(ServerLost, match="SIGKILL"):
            eventually(lambda: link.check() is not None, "the death is found")
        link.restart()
        link.check()
        os.kill(link.pid, signal.SIGSTOP)
        with pytest.raises(ServerLost, match="frozen"):
            eventually(lambda: link.check() is not None, "the stop is found")
        link.restart()
        assert [link.port_of(server), link.port_of(other)] == ports
        for port in ports:
            with connect(port) as connection:
                assert exchange(connection, 10) >= 0.001


@pytest.mark.real
def test_a_link_that_cannot_start_is_an_error_with_its_cause(tmp_path):
    """A host that can have no address."""
    with pytest.raises(LabError, match=r"a\.\.b"):
        LinkProcess(Link(0.001), [("a..b", 80)], tmp_path).__enter__()
