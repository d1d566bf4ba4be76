"""The link's process: what a client and a server on its two sides see.

Lower bounds of times are exact: no byte is early by more than 50 µs a direction. Where a time may not be longer, the
shortest of several is compared, since other programs may delay any one of them.
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
from clients.link.peers import PATIENCE, answer, connect, exchange, first_exchange, read, reset, serving

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


def through(rtt, address, folder, bandwidth=None, buffer=None):
    """A link before one server."""
    return LinkProcess(Link(rtt, bandwidth, buffer), [address], folder)


def shortest(seconds, count=5):
    """Of several."""
    return min(seconds() for _ in range(count))


def test_a_new_connection_costs_one_round_trip_and_each_exchange_another(link):
    """The handshake is paid once, by the first bytes."""
    assert first_exchange(link, 10) >= 2 * RTT * AT_LEAST
    with connect(link) as connection:
        exchange(connection, 10)
        assert exchange(connection, 10) >= RTT * AT_LEAST
        assert shortest(lambda: exchange(connection, 10)) < 2 * RTT


def test_a_connection_that_was_opened_ahead_costs_nothing_later(link):
    """A connection that was opened ahead has done its handshake when a client needs it."""

    def opened_ahead():
        with connect(link) as connection:
            time.sleep(1.5 * RTT)  # the time is the condition
            return exchange(connection, 10)

    assert RTT * AT_LEAST <= shortest(opened_ahead) < 2 * RTT


@pytest.mark.parametrize(("size", "flights"), [(14_600, 1), (14_601, 2), (43_801, 3), (1_000_000, 7)])
def test_a_body_on_a_new_connection_takes_the_round_trips_of_slow_start(size, flights, link):
    """Besides the one of the handshake."""
    assert first_exchange(link, size) >= (1 + flights) * RTT * AT_LEAST


def test_a_body_on_a_kept_connection_takes_less(link):
    """The second one finds the window of the first: 2 flights in place of 7."""
    with connect(link) as connection:
        exchange(connection, 1_000_000)
        assert shortest(lambda: exchange(connection, 1_000_000)) < 7 * RTT


def test_a_server_that_sends_first_is_heard_after_two_round_trips(tmp_path):
    """It may send when the client's ACK has arrived."""
    with (
        serving(lambda connection: connection.sendall(b"220 ready")) as address,
        through(RTT, address, tmp_path) as link,
    ):
        began = time.monotonic()
        with connect(link.port_of(address)) as connection:
            assert read(connection, 9) == b"220 ready"
        assert time.monotonic() - began >= 2 * RTT * AT_LEAST


def test_a_bandwidth_is_shared_by_the_connections(tmp_path, server):
    """Two bodies of 50,000 bytes at 8 Mbit/s take 100 ms together."""
    with through(0.0, server, tmp_path, bandwidth=8e6) as link:
        began = time.monotonic()
        with connect(link.port_of(server)) as one, connect(link.port_of(server)) as other:
            for connection in (one, other):
                connection.sendall(b"50000\n")
            for connection in (one, other):
                read(connection, 50_000)
        assert time.monotonic() - began >= 0.1 * AT_LEAST


@pytest.mark.parametrize("rtt", [0.0, 0.002])
def test_large_bodies_pass_unchanged_while_either_side_reads_late(rtt, tmp_path):
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
        through(rtt, address, tmp_path) as link,
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


def test_a_reset_by_the_client_is_a_reset_for_the_server(tmp_path):
    """Also while the server waits for nothing but a request."""
    found = Queue()

    def wait(connection):
        connection.sendall(b"y")
        try:
            found.put(connection.recv(1))
        except ConnectionResetError as error:
            found.put(error)

    with serving(wait) as address, through(RTT, address, tmp_path) as link:
        connection = connect(link.port_of(address))
        read(connection, 1)
        reset(connection)
        assert isinstance(found.get(timeout=PATIENCE), ConnectionResetError)


def test_a_refused_connection_is_a_reset_after_one_round_trip(tmp_path):
    """The kernel has accepted the client before the upstream could refuse."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    began = time.monotonic()
    with through(RTT, address, tmp_path) as link, connect(link.port_of(address)) as connection:
        with pytest.raises(ConnectionResetError):
            connection.recv(1)
        assert time.monotonic() - began >= RTT * AT_LEAST


@pytest.mark.parametrize(("buffer", "drops"), [(5_000, True), (None, False)])
def test_a_full_buffer_drops_segments_which_are_counted_and_arrive_all_the_same(tmp_path, server, buffer, drops):
    """200 kB at once are more than a buffer of 5 kB holds. Requests of a few bytes always find room.

    Without a buffer, as in runs that are older, all wait: a link drops nothing.
    """
    with through(0.002, server, tmp_path, bandwidth=20e6, buffer=buffer) as link:
        with connect(link.port_of(server)) as connection:
            exchange(connection, 200_000)
        use = link.use()
    assert (use.up_dropped, use.down_dropped > 0) == (0, drops)
    assert use.down_bytes == 200_000
    assert use.down_byte_seconds / use.down_bytes > 0
