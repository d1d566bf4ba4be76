"""Wrong functions of users: their trials fail, because the upstream counts what it
received and sent.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from clientlab import plugins
from clientlab.analysis.received import (
    find_difference,
    find_impossible_times,
    hash_request,
)
from clientlab.judging.cautions import cautions_of
from clientlab.observing.samples import Samples, find_delay_shares
from clientlab.results.figures import BY_KEY
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.running.trial_runner import TrialRunner
from clientlab.testbeds.servers import Endpoint, read_upstream
from clientlab.trial.context import PeerAddress
from clientlab.workload.values import Delay, Statuses
from clientlab.workload.workload import make_workload
from clients.documents import a_planned_trial, a_run, a_trial
from clients.fake_testbed import FakeTestbed
from clients.sampled import records_of, samples_of
from mockupstream.metrics import digest_of
from running import development

FUNCTIONS = """
import http.client
import itertools
from urllib.parse import urlsplit

calls, answers = itertools.count(), {}


def send(url):
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=10)
    try:
        connection.request("GET", parts.path + "?" + parts.query)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def honest(url): return send(url)
def adds_query(url): return send(url + f"&nonce={next(calls)}")
def caches(url):
    if url not in answers:
        answers[url] = send(url)
    return answers[url]
"""


class OneUpstream(FakeTestbed):
    """A testbed with one upstream, which runs."""

    def address(self, upstream: str, route: str) -> PeerAddress:  # noqa: ARG002
        return PeerAddress(f"http://127.0.0.1:{self.server.port}")

    def reading(self, upstream: str, route: str) -> ServerCounters:  # noqa: ARG002
        return ServerCounters(
            upstream=read_upstream(Endpoint("127.0.0.1", self.server.port))
        )


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("functions")
    (folder / "mine.py").write_text(FUNCTIONS)
    with development("aiohttp") as server:
        runner = TrialRunner(OneUpstream(server))

        def measure(name: str):
            strategy = f"{folder / 'mine.py'}:{name}@threads"
            plugins.admit([strategy])
            workload = make_workload(
                path="/bytes/50", requests=12, warmup=2, delay=Delay.parse("20ms")
            )
            planned = a_planned_trial(strategy).updated(concurrency=2)
            return runner(planned, workload, folder, lambda _: None)

        yield measure


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("honest", None),
        ("adds_query", "another method, path or query"),
        ("caches", "keep no answers"),
    ],
)
def test_only_honest_functions_are_ranked(name, reason, measured):
    trial = measured(name)
    assert trial.status == ("failed" if reason else "done"), trial.reason
    assert reason in trial.reason if reason else trial.servers.upstream.requests == 12


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/bytes/50?delay=0.02",
        "/echo?a=b%20c;d&e=[f]&k=%C3%A9",
        "/%2e/%7E?",
        "/\xe9",
    ],
)
def test_both_sides_have_the_same_hash(target):
    """They share no code. What a library percent-encodes makes no difference."""
    assert hash_request("PUT", target) == digest_of("PUT", target)
    assert hash_request("PUT", target) != hash_request("GET", target)
    encoded = hash_request("GET", "/a%7Eb")
    assert encoded == hash_request("GET", "/a~b")
    assert encoded != hash_request("GET", "/a-b")


def samples(seconds, errors) -> Samples:
    """Requests of 50 bytes, answered with 200 unless they have an error."""
    records = records_of(0, seconds, errors)
    succeeded = records["error"] == 0
    records["status"][succeeded] = 200
    records["bytes"][succeeded] = 50
    return samples_of(records)


def use_of(
    requests: int = 10, method: str = "GET", target: str = "/bytes/50?a=b", **changes
) -> ServerUse:
    """What an upstream counts that sends 50 bytes in answer to each request."""
    use = ServerUse(
        cpu_seconds=0.0,
        requests=requests,
        request_digest=requests * hash_request(method, target),
        failed_requests=0,
        response_body_bytes=50 * requests,
        request_body_bytes=0,
    )
    return use.updated(**changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"target": "/bytes/50"}, "without the query"),
        ({"method": "HEAD"}, "another method"),
        ({"request_body_bytes": 50}, "bytes of request bodies"),
        ({"response_body_bytes": 550}, "bytes of bodies"),
        ({"failed_requests": 10}, "error status"),
        ({"requests": 9}, "keep no answers"),
        ({"requests": 11}, "sends more than it is asked"),
    ],
)
def test_the_upstreams_counts_tell_what_a_wrong_function_did(changes, reason):
    found = samples([0.01] * 10, 0)
    planned = a_planned_trial()
    workload = make_workload(path="/bytes/50?a=b")
    assert find_difference(found, planned, workload, use_of()) is None
    assert reason in find_difference(found, planned, workload, use_of(**changes))


def test_a_client_that_sends_failed_requests_again_is_believed():
    """Its calls took three requests each, of which the upstream refused two."""
    sent = samples([0.01] * 10, 0)
    workload = make_workload(path="/bytes/50?a=b")
    use = use_of(30, failed_requests=20, response_body_bytes=500)
    assert find_difference(sent, a_planned_trial(), workload, use) is None
    trial = a_trial(requests=10, servers=ServerCounters(upstream=use))
    assert BY_KEY["attempts"].of(trial) == 3
    [caution] = [one for one in cautions_of(a_run(trial)) if one.kind == "errors"]
    assert "3.00 requests per call" in caution.text


@pytest.mark.parametrize(
    ("seconds", "error", "early"),
    [(0.0195, 0, False), (0.010, 0, True), (0.010, 1, False), (0.021, 0, False)],
)
def test_a_request_cannot_end_before_its_delay(seconds, error, early):
    """Beyond what two clocks differ by. A failed request can: its connection broke."""
    workload = make_workload(delay=Delay.parse("20ms"))
    found = find_impossible_times(samples([0.021, seconds], [0, error]), workload)
    assert (found is not None) == early


def test_parts_of_delays_are_expected_where_they_were_sent():
    """Four slots begin with a fourth, two, three, and all of the delay."""
    found = samples([0.021] * 10, 0)
    planned = a_planned_trial()
    workload = make_workload(path="/bytes/50", delay=Delay.parse("20ms"))
    digest = 0
    for delay in (0.005, 0.010, 0.015, *[0.02] * 7):
        digest += hash_request("GET", f"/bytes/50?delay={delay:.6f}")
    use = use_of(request_digest=digest)
    shares = find_delay_shares(found.numbers, [0], 4)
    staggered = replace(found, delay_shares=shares)
    assert find_difference(staggered, planned, workload, use) is None
    assert find_difference(found, planned, workload, use) is not None


@pytest.mark.parametrize(("route", "fits"), [("direct", False), ("proxy", True)])
def test_an_expected_5xx_may_be_the_answer_of_a_proxy(route, fits):
    """Then it need not have reached the upstream, nor waited for its delay."""
    found = samples([0.021] * 4 + [0.001] * 4, 0)
    found.records["status"][4:] = 502
    found.records["bytes"][4:] = 0
    use = use_of(4, target="/bytes/50?delay=0.020000")
    workload = make_workload(
        path="/bytes/50", delay=Delay.parse("20ms"), expect=Statuses.parse("200,502")
    )
    planned = a_planned_trial().updated(route=route)
    assert (find_difference(found, planned, workload, use) is None) == fits
    assert find_impossible_times(found, workload) is None


@pytest.mark.parametrize(
    ("got", "others", "fits"),
    [
        (8, 0, True),
        (10, 0, True),
        (7, 0, False),
        (11, 0, False),
        (11, 1, True),
        (12, 1, False),
        (12, 4, True),
    ],
)
def test_requests_without_a_response_may_have_reached_the_upstream_or_not(
    got, others, fits
):
    """Ten calls, two of which timed out.

    `others`: held before the trial, by an upstream of four threads.
    """
    use = use_of(got, target="/bytes/50", in_flight=others, slots=4)
    calls = samples([0.01] * 10, [0] * 8 + [1, 1])
    workload = make_workload(path="/bytes/50")
    found = find_difference(calls, a_planned_trial(), workload, use)
    assert (found is None) == fits
