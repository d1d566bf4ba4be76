"""Bodies that are read in chunks: the memory that large ones take, and many of them at once."""

from __future__ import annotations

import pytest

from clientlab import strategies
from clientlab.conformance.server import counting_server, ok
from clientlab.errors import LabError
from clientlab.strategies import check_capabilities
from clientlab.workload.workload import Workload
from clients.measured import measure

MIB = 1 << 20
SIZE = 32 * MIB
MOST_ABOVE_IDLE = 24 * MIB  # buffers, and what the first request loads


def chunked(body: bytes, size: int = MIB) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    framed = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"


@pytest.mark.real
@pytest.mark.parametrize("client", ["requests-session", "aiohttp"])
def test_a_large_body_read_in_chunks_is_not_held(client):
    """32 MiB without a length take less than one body above idle, first request included; all of it is received."""
    large = chunked(bytes(SIZE))
    workload = Workload(path="/large", requests=2, concurrency=1, warmup=0, read="chunks")
    with counting_server(lambda _: large) as server:
        measured = measure(client, workload, server.url)
    assert measured.samples.errors == {}
    assert measured.samples.records["bytes"].tolist() == [SIZE] * 2
    assert measured.outcome.peak_pss_bytes - measured.outcome.idle_pss_bytes <= MOST_ABOVE_IDLE


@pytest.mark.real
def test_the_librarys_own_elapsed_is_kept_beside_the_labs_time():
    """For each successful request, no longer than what the lab measured, and 0 for a failed one."""
    workload = Workload(path="/{k}", requests=12, concurrency=3, warmup=1, elapsed=True)
    with counting_server(lambda seen: None if seen.target == "/5" else ok(), hold=0.02) as server:
        records = measure("requests-session@threads", workload, server.url).samples.records
    good = records[records["error"] == 0]
    assert len(good) == 11
    assert (good["elapsed"] >= 0.02).all()
    assert (good["elapsed"] <= good["seconds"] + 1e-4).all()
    assert records["elapsed"][records["error"] > 0].tolist() == [0.0]


@pytest.mark.parametrize(
    ("strategy", "changes", "field"),
    [
        ("httplib2@threads", {"read": "chunks"}, "read"),
        ("pycurl@multi", {"read": "chunks"}, "read"),
        ("geventhttpclient", {"upload_size": 5, "upload": "stream"}, "upload"),
        ("urllib3", {"elapsed": True}, "elapsed"),
    ],
)
def test_a_client_that_cannot_is_refused(strategy, changes, field):
    with pytest.raises(LabError, match=f"^{field}: .*'{strategy}'"):
        check_capabilities(strategies.find(strategy), Workload(**changes))
