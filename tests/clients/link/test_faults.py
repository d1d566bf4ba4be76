"""Faults of the link's process, seen by sockets: which connections have them, and an outage."""

from __future__ import annotations

import contextlib
import time

import pytest

from clientlab.testbeds.linked import LinkProcess
from clientlab.workload.faults import Faults
from clientlab.workload.link import Link
from clients.link.peers import answer, connect, serving
from running import eventually

SIZE = 1000


@pytest.fixture(scope="module")
def server():
    """Answers each request with as many bytes as it asks for."""
    with serving(answer) as address:
        yield address


@contextlib.contextmanager
def faulty(text, address, folder):
    """The process of a link with these faults, and its port."""
    with LinkProcess(Link(0.0, faults=Faults.parse(text)), [address], folder) as link:
        yield link, link.port_of(address)


def heard(port, size=SIZE, patience=0.3):
    """How many bytes of an answer came on a new connection, and how it ended: whole, reset, closed, silent, refused."""
    came = 0
    try:
        with connect(port) as connection:
            connection.settimeout(patience)
            connection.sendall(b"%d\n" % size)
            while came < size:
                data = connection.recv(1 << 16)
                if not data:
                    return came, "closed"
                came += len(data)
            return came, "whole"
    except ConnectionRefusedError:
        return 0, "refused"
    except ConnectionError:
        return came, "reset"
    except TimeoutError:
        return came, "silent"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("refuse:100%", (0, "reset")),
        ("blackhole:100%", (0, "silent")),
        ("reset-after=400B:100%", (400, "reset")),
        ("slice=100B:100%", (SIZE, "whole")),
    ],
)
def test_each_kind_of_fault_ends_a_connection_in_its_way(text, expected, server, tmp_path):
    """Only between the beginning and the end of a trial's measured part; each is counted."""
    with faulty(text, server, tmp_path) as (link, port):
        assert heard(port) == (SIZE, "whole")
        link.draw_faults(1)
        assert [heard(port) for _ in range(3)] == [expected] * 3
        link.draw_faults(None)
        assert heard(port) == (SIZE, "whole")
        assert link.use().faults == {text.partition(":")[0].partition("=")[0]: 3}


def test_slices_arrive_one_by_one(server, tmp_path):
    """With a pause between two of them."""
    with faulty("slice=100B:100%", server, tmp_path) as (link, port):
        link.draw_faults(1)
        began = time.monotonic()
        assert heard(port, patience=5) == (SIZE, "whole")
        assert time.monotonic() - began >= 0.009


def test_the_seed_decides_which_connections_have_a_fault(server, tmp_path):
    """In the order in which they are accepted; each beginning counts anew."""
    faults = Faults.parse("refuse:30%")
    with faulty("refuse:30%", server, tmp_path) as (link, port):
        for seed in (7, 8, 7):
            link.draw_faults(seed)
            drawn = faults.of_connections(seed)
            expected = [(SIZE, "whole") if drawn(number) is None else (0, "reset") for number in range(20)]
            assert [heard(port) for _ in range(20)] == expected


def test_an_outage_resets_what_is_open_and_refuses_what_is_new(server, tmp_path):
    """For its length, from its moment on; then the same port is served again."""
    with faulty("outage=1s@200ms", server, tmp_path) as (link, port), connect(port) as before:
        before.settimeout(5)
        link.draw_faults(1)
        began = time.monotonic()
        with pytest.raises(ConnectionError):
            before.recv(1)
        assert time.monotonic() - began >= 0.19
        assert heard(port) == (0, "refused")
        eventually(lambda: heard(port) == (SIZE, "whole"), "the outage is over")
        assert time.monotonic() - began >= 1.19
        assert link.use().faults == {"outage": 1}


def test_an_outage_ends_with_its_trial(server, tmp_path):
    """The next trial finds the servers."""
    with faulty("outage=60s@0s", server, tmp_path) as (link, port):
        link.draw_faults(1)
        eventually(lambda: heard(port) == (0, "refused"), "the outage has begun")
        link.draw_faults(None)
        eventually(lambda: heard(port) == (SIZE, "whole"), "the outage is over", 5)


def test_a_link_without_faults_has_none_to_draw(server, tmp_path):
    """And counts none."""
    with LinkProcess(Link(0.0), [server], tmp_path) as link:
        link.draw_faults(1)
        assert heard(link.port_of(server)) == (SIZE, "whole")
        assert link.use().faults is None
