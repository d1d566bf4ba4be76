"""The link as a program: its arguments, how it ends, and how the lab starts it again."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from clientlab.errors import LabError, ServerLost
from clientlab.link import addresses
from clientlab.link.__main__ import main
from clientlab.link.relay import Forward, RelayedConnection, Side
from clientlab.link.relay import serving as relaying
from clientlab.testbeds.linked import LinkProcess
from clientlab.workload.link import Link
from clients.link.peers import PATIENCE, answer, connect, exchange, reset, serving
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
        (["--rtt", "-0.01", *FORWARD], "a round-trip time of -0.01 s"),
        (["--rtt", "nan", *FORWARD], "a round-trip time of nan s"),
        (["--rtt", "35 ms", *FORWARD], "argument --rtt"),
        (["--rtt", "0.01"], "--forward"),
        (FORWARD, "--rtt"),
        (["--rtt", "10ms", "--bandwidth", "0mbit", *FORWARD], "a bandwidth of 0 bit/s"),
        (["--rtt", "0", "--bandwidth", "20mbit", "--buffer", "0", *FORWARD], "'0' is not a buffer; write 64KiB"),
        (["--rtt", "0", "--bandwidth", "20mbit", "--buffer", "0KB", *FORWARD], "a buffer of 0 bytes; write 1500B"),
        (["--rtt", "0", "--bandwidth", "20mbit", "--buffer", "64000", *FORWARD], "'64000' is not a buffer"),
        (["--rtt", "10ms", "--buffer", "64KiB", *FORWARD], "a buffer of 65,536 bytes without a bandwidth"),
        (["--rtt", "0.01", "--forward", "9000"], "'9000' is not an address"),
        (["--rtt", "0.01", "--forward", "localhost:70000"], "is not an address"),
        (["--rtt", "0.01", *FORWARD, *FORWARD, "--listen", "127.0.0.1:0"], "one for each --forward"),
        (["--rtt", "0.01", *FORWARD, "--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0"], "one for each --forward"),
    ],
)
def test_a_wrong_argument_is_one_line_and_exit_2(words, named, capsys):
    """The link's process refuses a wrong argument in one line, with exit code 2, before it listens."""
    assert main(words) == 2
    error = capsys.readouterr().err
    assert named in error
    assert error.count("\n") == 1


def test_a_port_that_is_taken_is_one_line_and_exit_2(capsys):
    """The link's process refuses a port that is in use in one line that names the port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["--rtt", "0.01", *FORWARD, "--listen", f"127.0.0.1:{port}"]) == 2
    assert f"port {port} of 127.0.0.1: Address already in use" in capsys.readouterr().err


def test_addresses_are_read_as_they_are_written():
    """The link's process reads host names, IPv4 addresses and IPv6 addresses in brackets."""
    for address in (("127.0.0.1", 80), ("::1", 8000), ("proxy.example", 1)):
        assert addresses.parse(addresses.written(address)) == address


@pytest.mark.parametrize("end", ["stdin", "SIGTERM"])
def test_the_process_ends_with_its_parent_and_on_sigterm(end, server):
    """With code 0, while a connection is open."""
    command = [sys.executable, "-m", "clientlab.link", "--rtt", "0", "--forward", addresses.written(server)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        (port,) = json.loads(process.stdout.readline())["ports"]
        with connect(port) as connection:
            exchange(connection, 10)
            if end == "stdin":
                process.stdin.close()
            else:
                process.terminate()
            assert process.wait(PATIENCE) == 0


def test_a_link_that_was_killed_or_frozen_is_found_and_started_again_on_its_port(tmp_path, server):
    """A second server has a port of its own."""
    with serving(answer) as other, LinkProcess(Link(0.001), [server, other], tmp_path) as link:
        ports = [link.port_of(server), link.port_of(other)]
        assert len(set(ports)) == 2
        link.check()
        os.kill(link.pid, signal.SIGKILL)
        with pytest.raises(ServerLost, match=r"link of 1 ms was ended by SIGKILL \(log: .*link-1-ms\.log\)"):
            eventually(lambda: link.check() is not None, "the death is found")
        link.restart()
        link.check()
        os.kill(link.pid, signal.SIGSTOP)
        with pytest.raises(ServerLost, match="link of 1 ms is frozen"):
            eventually(lambda: link.check() is not None, "the stop is found")
        link.restart()
        assert [link.port_of(server), link.port_of(other)] == ports
        for port in ports:
            with connect(port) as connection:
                assert exchange(connection, 10) >= 0.001


def test_a_link_that_cannot_start_is_an_error_with_its_cause(tmp_path):
    """A host that can have no address."""
    with pytest.raises(LabError, match=r"link of 1 ms did not start: it ended with code 2: .*host 'a\.\.b'"):
        LinkProcess(Link(0.001), [("a..b", 80)], tmp_path).__enter__()


def test_a_closed_connection_leaves_no_object_without_the_garbage_collector(server):
    """The process runs almost without one: a collection would delay bytes."""

    def left():
        return [one for one in gc.get_objects() if isinstance(one, RelayedConnection | Side)]

    def end(connection):
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""

    async def relay_while(client, listener):
        async with relaying(Link(0.001), [Forward(listener, server)]):
            await asyncio.to_thread(client, listener.getsockname()[1])

    def client(port):
        for finish in (end, reset):
            with connect(port) as connection:
                exchange(connection, 100_000)
                assert left()
                finish(connection)
            eventually(lambda: not left(), "all objects are freed")

    gc.collect()
    gc.disable()
    try:
        asyncio.run(relay_while(client, addresses.bind(("127.0.0.1", 0))))
    finally:
        gc.enable()
