"""Wrong functions of users: their trials fail, because the upstream counts what it received and sent."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab import plugins
from clientlab.running.trial_runner import TrialRunner
from clientlab.testbeds.servers import Endpoint, read_upstream
from clientlab.trial.context import PeerAddress
from clientlab.trial.received import find_difference, find_impossible_times, hash_request
from clientlab.trial.samples import RECORD, Samples
from clientlab.trial.server_counters import ServerCounters, ServerUse
from clientlab.workload.values import Delay, Statuses
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial
from clients.fake_testbed import FakeTestbed
from mockupstream.metrics import digest_of
from running import development

FUNCTIONS = """
import http.client
import itertools
from urllib.parse import urlsplit

calls, answers = itertools.count(), {}


def send(url, method="GET", body=None, timeout=10):
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=timeout)
    try:
        connection.request(method, parts.path + ("?" + parts.query if parts.query else ""), body)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def honest(url): return send(url)
def drops_query(url): return send(url.partition("?")[0])
def adds_query(url): return send(url + f"&nonce={next(calls)}")
def asks_head(url): return send(url, "HEAD")
def sends_body(url): return send(url, body=b"hello")
def reads_nothing(url): return send(url)[0], b""
def constant_status(url): return 200, send(url)[1]
def caches(url):
    if url not in answers:
        answers[url] = send(url)
    return answers[url]
def retries(url):
    answer = send(url)
    return answer if answer[0] < 500 else send(url)
def hides_timeouts(url):
    try:
        return send(url, timeout=0.005)
    except TimeoutError:
        return 200, b"x" * 50
"""

CASES = {
    "drops_query": "without the query",
    "adds_query": "another method, path or query",
    "asks_head": "another method",
    "sends_body": "bytes of request bodies",
    "reads_nothing": "bytes of bodies",
    "constant_status": "error status",
    "caches": "keep no answers",
    "retries": "the client retries",
    "hides_timeouts": "impossible times|keep no answers",
}
PATHS = dict.fromkeys(("constant_status", "retries"), "/bytes/50?status=503")


class OneUpstream(FakeTestbed):
    """A testbed with one upstream, which runs."""

    def address(self, upstream: str, route: str) -> PeerAddress:  # noqa: ARG002
        return PeerAddress(f"http://127.0.0.1:{self.server.port}")

    def reading(self, upstream: str, route: str) -> ServerCounters:  # noqa: ARG002
        return ServerCounters(upstream=read_upstream(Endpoint("127.0.0.1", self.server.port)))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("functions")
    (folder / "mine.py").write_text(FUNCTIONS)
    with development("aiohttp") as server:
        runner = TrialRunner(OneUpstream(server))

        def measure(name: str):
            strategy = f"{folder / 'mine.py'}:{name}@threads"
            plugins.admit([strategy])
            workload = Workload(path=PATHS.get(name, "/bytes/50"), requests=12, warmup=2, delay=Delay.parse("20ms"))
            planned = a_planned_trial(strategy).model_copy(update={"concurrency": 2})
            return runner(planned, workload, folder, lambda _: None)

        yield measure


@pytest.mark.real
@pytest.mark.parametrize(("name", "reason"), CASES.items())
def test_wrong_functions_are_not_ranked(name, reason, measured):
    trial = measured(name)
    assert trial.status == "failed"
    assert any(part in trial.reason for part in reason.split("|")), trial.reason


@pytest.mark.real
def test_honest_functions_are_measured(measured):
    trial = measured("honest")
    assert (trial.status, trial.reason, trial.servers.upstream.requests) == ("done", None, 12)


@pytest.mark.parametrize(
    "target", ["/", "/bytes/50?delay=0.02", "/echo?a=b%20c;d&e=[f]&k=%C3%A9", "/%2e/%7E?", "/\xe9"]
)
def test_both_sides_have_the_same_hash(target):
    """They share no code. What a library percent-encodes makes no difference."""
    assert hash_request("PUT", target) == digest_of("PUT", target) != hash_request("GET", target)
    assert hash_request("GET", "/a%7Eb") == hash_request("GET", "/a~b") != hash_request("GET", "/a-b")


def samples(seconds, errors) -> Samples:
    """Requests of 50 bytes, answered with 200 unless they have an error."""
    records = np.zeros(len(seconds), RECORD)
    records["seconds"], records["error"] = seconds, errors
    records["status"], records["bytes"] = np.where(records["error"], 0, 200), np.where(records["error"], 0, 50)
    return Samples(records, np.arange(len(seconds)), {}, {}, {})


@pytest.mark.parametrize(
    ("seconds", "error", "early"), [(0.0195, 0, False), (0.010, 0, True), (0.010, 1, False), (0.021, 0, False)]
)
def test_a_request_cannot_end_before_its_delay(seconds, error, early):
    """Beyond what two clocks differ by. A failed request can: its connection broke."""
    found = find_impossible_times(samples([0.021, seconds], [0, error]), Workload(delay=Delay.parse("20ms")))
    assert (found is not None) == early


@pytest.mark.parametrize(("route", "fits"), [("direct", False), ("proxy", True)])
def test_an_expected_5xx_may_be_the_answer_of_a_proxy(route, fits):
    """Then it need not have reached the upstream, nor waited for its delay."""
    found = samples([0.021] * 4 + [0.001] * 4, [0] * 8)
    found.records["status"][4:], found.records["bytes"][4:] = 502, 0
    use = ServerUse(
        cpu_seconds=0.0, requests=4, failed_requests=0, response_body_bytes=200, request_body_bytes=0,
        request_digest=4 * hash_request("GET", "/bytes/50?delay=0.020000"),
    )  # fmt: skip
    workload = Workload(path="/bytes/50", delay=Delay.parse("20ms"), expect=Statuses.parse("200,502"))
    planned = a_planned_trial().model_copy(update={"route": route})
    assert (find_difference(found, planned, workload, use) is None) == fits
    assert find_impossible_times(found, workload) is None


@pytest.mark.parametrize(
    ("got", "others", "fits"),
    [(8, 0, True), (10, 0, True), (7, 0, False), (11, 0, False), (11, 1, True), (12, 1, False), (12, 4, True)],
)
def test_requests_without_a_response_may_have_reached_the_upstream_or_not(got, others, fits):
    """Ten calls, two of which timed out. `others`: held before the trial, by an upstream of four threads."""
    use = ServerUse(
        cpu_seconds=0.0, requests=got, failed_requests=0, response_body_bytes=50 * got, request_body_bytes=0,
        request_digest=got * hash_request("GET", "/bytes/50"), in_flight=others, slots=4,
    )  # fmt: skip
    found = find_difference(samples([0.01] * 10, [0] * 8 + [1, 1]), a_planned_trial(), Workload(path="/bytes/50"), use)
    assert (found is None) == fits
