"""The link's process: what a client and a server on its two sides see.

Lower bounds of times are exact: no byte is early by more than 50 µs a direction. `test_flow` has the model's times.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
from queue import Queue

import pytest

from clientlab.testbeds.linked import LinkProcess
from clientlab.workload.link import Link
from clients.link.peers import PATIENCE, answer, connect, read, reset, serving

pytestmark = pytest.mark.real

RTT = 0.04
AT_LEAST = 0.995
"""Of a round trip: an event may be early by 50 µs."""


@pytest.fixture(scope="module")
def server():
    """It sends as many bytes as a line asks for."""
    with serving(answer) as address:
        yield address


@pytest.fixture(scope="module")
def link(tmp_path_factory, server):
    """A link of 40 ms before the server, and its port."""
    with LinkProcess(Link(RTT), [server], tmp_path_factory.mktemp("logs")) as process:
        yield process.port_of(server)


def through(rtt, address, folder, bandwidth=None):
    """A link before one server."""
    return LinkProcess(Link(rtt, bandwidth), [address], folder)


def test_large_bodies_pass_unchanged_while_either_side_reads_late(tmp_path):
    """20 MB each way, more than all buffers hold; then the end of both directions."""
    sent = os.urandom(1_000_000) * 20
    upload = Queue()

    def swap(connection):
        sender = threading.Thread(target=lambda: (connection.sendall(sent), connection.shutdown(socket.SHUT_WR)))
        sender.start()
        digest = hashlib.sha256()
        while chunk := connection.recv(1 << 20):
            digest.update(chunk)
        sender.join(PATIENCE)
        upload.put(digest.digest())

    with (
        serving(swap) as address,
        through(0.002, address, tmp_path) as link,
        connect(link.port_of(address)) as connection,
    ):
        sender = threading.Thread(target=lambda: (connection.sendall(sent), connection.shutdown(socket.SHUT_WR)))
        sender.start()
        sender.join(0.1)  # the client reads nothing meanwhile
        assert read(connection, len(sent)) == sent
        assert connection.recv(1) == b""
        assert upload.get(timeout=PATIENCE) == hashlib.sha256(sent).digest()


def test_the_end_of_a_direction_crosses_the_link_and_the_other_stays_open(link):
    """The server answers after the client has ended."""
    with connect(link) as connection:
        connection.sendall(b"100000\n")
        connection.shutdown(socket.SHUT_WR)
        assert len(read(connection, 100_000)) == 100_000
        assert connection.recv(1) == b""


def test_a_reset_by_the_server_is_a_reset_for_the_client(tmp_path):
    """The client sees the server's reset half a round trip later."""
    resets = Queue()

    def begin(connection):
        connection.recv(1)
        resets.put(time.monotonic())
        reset(connection)

    with (
        serving(begin) as address,
        through(RTT, address, tmp_path) as link,
        connect(link.port_of(address)) as connection,
    ):
        connection.sendall(b"x")
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
        assert time.monotonic() - resets.get(timeout=PATIENCE) >= RTT / 2 * AT_LEAST
