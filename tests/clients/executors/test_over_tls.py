"""Executors that drive the client themselves, or patch what it stands on: over TLS as without."""

from __future__ import annotations

import pytest

from clientlab.conformance.server import counting_server
from clientlab.workload.workload import Workload
from clients.measured import measure
from tls_servers import Authority

pytestmark = pytest.mark.real

STRATEGIES = ["pycurl@multi", "urllib3@gevent"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_certificates_are_verified_and_connections_counted(strategy, tmp_path):
    ours, foreign = Authority(tmp_path / "ours"), Authority(tmp_path / "foreign")
    workload = Workload(path="/{k}", requests=24, concurrency=4, warmup=0)
    with counting_server(hold=0.01, tls=[ours.context("127.0.0.1")]) as server:
        measured = measure(strategy, workload, server.url, ca_file=ours.ca_file)
        assert sorted(seen.target for seen in server.seen) == sorted(f"/{k}" for k in range(24))
        assert measured.samples.errors == {}
        assert server.accepted == measured.outcome.connections_begun <= 4
        refused = measure(strategy, workload, server.url, ca_file=foreign.ca_file)
        assert refused.samples.errors == {"tls": 24}
        assert len(server.seen) == 24
