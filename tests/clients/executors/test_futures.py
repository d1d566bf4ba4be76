"""requests-futures: the wait in its pool's queue is not the request's."""

from __future__ import annotations

from statistics import median

import pytest

from clientlab.conformance.server import counting_server
from clientlab.workload.workload import Workload
from clients.measured import measure

pytestmark = pytest.mark.real


def test_the_time_of_a_request_is_that_in_its_worker():
    """All are asked for at once, and most wait for a worker: that wait is in the whole, and in no request's time."""
    with counting_server(hold=0.03) as server:
        measured = measure("requests-session@futures?max_workers=2", Workload(requests=24, warmup=0), server.url)
        assert server.connections == 2
    assert measured.outcome.wall_seconds > 12 * 0.03
    assert median(measured.samples.records["seconds"].tolist()) < measured.outcome.wall_seconds / 4
    assert measured.samples.records["start"].max() - measured.outcome.began > 10 * 0.03
