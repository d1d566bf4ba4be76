"""The formula that the link is held to, cases computed by hand, two published figures, and real transfers."""

from __future__ import annotations

import pytest

from clientlab.testbeds.linked import LinkProcess
from clientlab.workload.link import Link
from clients.link.arithmetic import danjou, flights, response_seconds, window_after
from clients.link.peers import answer, connect, exchange, first_exchange, serving


def test_a_body_comes_in_flights_of_10_segments_20_and_40():
    """The last one is what remains."""
    assert flights(14_600) == [14_600]
    assert flights(1_000_000) == [14_600, 29_200, 58_400, 116_800, 233_600, 467_200, 80_200]
    assert window_after(1_000_000) == 934_400


def test_a_round_trip_of_106_ms_gives_both_figures_that_danjou_published():
    """10 requests of 1 s: 12.12 s with a connection each, and 11.17 s with a session (published: 11.22 s)."""
    assert danjou(0.106, 1.0, 10, session=False) == pytest.approx(12.12)
    assert danjou(0.106, 1.0, 10, session=True) == pytest.approx(11.166)


@pytest.mark.real
@pytest.mark.parametrize(
    ("rtt", "bandwidth", "size"), [(0.005, None, 10_000), (0.035, None, 1_000_000), (0.035, 20e6, 1_000_000)]
)
def test_a_transfer_takes_what_arithmetic_says(rtt, bandwidth, size, tmp_path):
    """On a new connection and on a kept one; the quickest of five is late by the time that the machine itself takes."""
    rate = bandwidth / 8 if bandwidth else 1e12
    new = rtt + response_seconds(size, rtt, rate=rate)
    kept = response_seconds(size, rtt, window_after(size, window_after(size)), rate)
    with serving(answer) as server, LinkProcess(Link(rtt, bandwidth), [server], tmp_path) as link:
        port = link.port_of(server)
        first = min(first_exchange(port, size) for _ in range(5))
        with connect(port) as connection:
            exchange(connection, size)
            exchange(connection, size)
            later = min(exchange(connection, size) for _ in range(5))
    for measured, computed in ((first, new), (later, kept)):
        assert computed - 0.001 < measured < 1.02 * computed + 0.005
