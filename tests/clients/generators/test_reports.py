"""What load generators print, as it was recorded from the real programs, and the figures that are read from it."""

from __future__ import annotations

import pytest

from clientlab.generators.commands import H2load, Hey, Wrk
from clientlab.generators.generator_interface import GeneratorLoad, LoadReport
from clientlab.workload.workload import Request

LOAD = GeneratorLoad(Request("GET", "http://127.0.0.1/", {}, None), 3, 1)

WRK = """\
Running 1s test @ http://127.0.0.1:40949/item?x=1
  1 threads and 3 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     5.17ms    5.78ms  51.20ms   89.94%
    Req/Sec   744.69    341.89     1.16k    61.54%
  979 requests in 1.32s, 106.30KB read
  Socket errors: connect 0, read 2, write 0, timeout 1
  Non-2xx or 3xx responses: 241
Requests/sec:    744.00
Transfer/sec:     80.78KB
"""
H2LOAD = """\
Main benchmark duration is over for thread #0. Stopping all clients.
Stopped all clients for thread #0

finished in 1.01s, 531.00 req/s, 57.66KB/s
requests: 531 total, 534 started, 531 done, 400 succeeded, 131 failed, 0 errored, 0 timeout
status codes: 400 2xx, 0 3xx, 1 4xx, 130 5xx
traffic: 57.66KB (59044) total, 33.38KB (34176) headers (space savings 0.00%), 6.26KB (6408) data
"""
HEY = """
Summary:
  Total:\t1.0064 secs
  Slowest:\t0.0314 secs
  Requests/sec:\t678.6649

Response time histogram:
  0.002 [1]\t|
  0.005 [527]\t|■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■

Latency distribution:
  10% in 0.0023 secs

Details (average, fastest, slowest):
  resp read:\t0.0000 secs, 0.0000 secs, 0.0002 secs

Status code distribution:
  [200]\t530 responses
  [503]\t153 responses

Error distribution:
  [2]\tGet "http://127.0.0.1:1/": dial tcp 127.0.0.1:1: connect: connection refused
"""


@pytest.mark.parametrize(
    ("generator", "printed", "report"),
    [
        (Wrk(), WRK, LoadReport(738, 244, 979 / 744)),
        (H2load(), H2LOAD, LoadReport(400, 131, 1.0)),
        (Hey(), HEY, LoadReport(530, 155, 1.0064)),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_successes_failures_and_seconds_are_read(generator, printed, report, tmp_path):
    """Responses with an error status are failures, and so are requests without a response."""
    assert generator.report(printed, tmp_path, LOAD) == report
