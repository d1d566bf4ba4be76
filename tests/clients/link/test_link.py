"""The link's process, between a real client and a real server."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from queue import Queue

import pytest

from clientlab.link.__main__ import main
from clientlab.testbeds.linked import LinkProcess
from clientlab.workload.values import Link
from clients.link.peers import (
    PATIENCE,
    answer,
    connect,
    exchange,
    first_exchange,
    read,
    serving,
)

pytestmark = pytest.mark.real

RTT = 0.035
FORWARD = ["--forward", "127.0.0.1:9"]


@pytest.fixture(scope="module")
def server():
    """The address of a server that sends as many bytes as a line asks for."""
    with serving(answer) as address:
        yield address


@pytest.mark.parametrize(
    ("bandwidth", "new", "kept"), [(None, 8 * RTT, RTT), (20e6, 0.534, RTT + 0.4)]
)
def test_a_transfer_takes_the_computed_time(bandwidth, new, kept, server, tmp_path):
    """1 MB takes 7 flights on a new connection, from 10 segments on, and one flight on
    a kept connection.
    """
    size = 1_000_000
    with LinkProcess(Link(RTT, bandwidth), [server], tmp_path) as link:
        port = link.port_of(server)
        first = min(first_exchange(port, size) for _ in range(3))
        with connect(port) as connection:
            later = min([exchange(connection, size) for _ in range(4)][2:])
    for measured, computed in ((first, new), (later, kept)):
        assert computed - 0.001 < measured < 1.02 * computed + 0.005


@pytest.mark.parametrize(
    ("silence", "response"),
    [(0.03, 2 * RTT), (1.1, RTT)],
    ids=["work between connect and the first byte", "a connection opened ahead"],
)
def test_the_first_byte_waits_for_the_handshake(silence, response, server, tmp_path):
    with (
        LinkProcess(Link(RTT), [server], tmp_path) as link,
        connect(link.port_of(server)) as connection,
    ):
        time.sleep(silence)
        measured = exchange(connection, 1)
    assert response - 0.001 < measured < response + 0.02


def test_a_server_that_sends_first_does_not_wait_for_the_client(tmp_path):
    with (
        serving(lambda connection: connection.sendall(b"x")) as address,
        LinkProcess(Link(RTT), [address], tmp_path) as link,
    ):
        began = time.monotonic()
        with connect(link.port_of(address)) as connection:
            read(connection, 1)
        assert 2 * RTT - 0.001 < time.monotonic() - began < 2 * RTT + 0.02


def test_a_refused_connection_is_reset_after_a_round_trip(tmp_path):
    with serving(answer) as address:
        pass  # nothing listens there any more
    with LinkProcess(Link(RTT), [address], tmp_path) as link:
        began = time.monotonic()
        connection = connect(link.port_of(address))
        with connection, pytest.raises(ConnectionResetError):
            connection.recv(1)
        assert RTT - 0.001 < time.monotonic() - began < RTT + 0.02


def test_large_bodies_pass_unchanged_while_either_side_reads_late(tmp_path):
    """20 MB in each direction are more than all buffers hold."""
    sent = os.urandom(1_000_000) * 20
    upload = Queue()

    def swap(connection):
        sender = threading.Thread(
            target=lambda: (
                connection.sendall(sent),
                connection.shutdown(socket.SHUT_WR),
            )
        )
        sender.start()
        digest = hashlib.sha256()
        while chunk := connection.recv(1 << 20):
            digest.update(chunk)
        sender.join(PATIENCE)
        upload.put(digest.digest())

    with (
        serving(swap) as address,
        LinkProcess(Link(0.002), [address], tmp_path) as link,
        connect(link.port_of(address)) as connection,
    ):
        sender = threading.Thread(
            target=lambda: (
                connection.sendall(sent),
                connection.shutdown(socket.SHUT_WR),
            )
        )
        sender.start()
        sender.join(0.1)  # the client reads nothing meanwhile
        assert read(connection, len(sent)) == sent
        assert connection.recv(1) == b""
        assert upload.get(timeout=PATIENCE) == hashlib.sha256(sent).digest()


def test_a_reset_by_the_server_is_a_reset_for_the_client(tmp_path):
    resets = Queue()

    def begin(connection):
        connection.recv(1)
        resets.put(time.monotonic())
        connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )

    with (
        serving(begin) as address,
        LinkProcess(Link(RTT), [address], tmp_path) as link,
        connect(link.port_of(address)) as connection,
    ):
        connection.sendall(b"x")
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
        assert time.monotonic() - resets.get(timeout=PATIENCE) >= 0.99 * RTT / 2


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--rtt", "-0.01", *FORWARD], "-0.01"),
        (["--rtt", "0.01"], "--forward"),
        (["--rtt", "10ms", "--bandwidth", "0mbit", *FORWARD], "0 bit/s"),
        (["--rtt", "0.01", "--forward", "9000"], "9000"),
        (
            [
                "--rtt",
                "0.01",
                *FORWARD,
                "--listen",
                "127.0.0.1:0",
                "--listen",
                "127.0.0.1:0",
            ],
            "--forward",
        ),
    ],
)
def test_a_wrong_argument_is_refused(words, named, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert named in capsys.readouterr().err


def test_the_process_ends_with_its_parent(server):
    host, port = server
    command = [
        sys.executable,
        "-m",
        "clientlab.link",
        "--rtt",
        "0",
        "--forward",
        f"{host}:{port}",
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        (port,) = json.loads(process.stdout.readline())["ports"]
        with connect(port) as connection:
            exchange(connection, 10)
            process.stdin.close()
            assert process.wait(PATIENCE) == 0
