"""Files of recorded requests: each format, what is left out, and the schedule of
recorded times.
"""

from __future__ import annotations

import json
import re
from itertools import zip_longest

import pytest

from clientlab.errors import FieldError
from clientlab.workload.load import (
    arrivals_of,
    check_load,
    is_open,
    is_warm,
    longest_pause,
    requests_in,
)
from clientlab.workload.recordings import (
    Recorded,
    pin_recorded_requests,
    read_recorded_requests,
)
from clientlab.workload.workload import Workload, make_workload, take_share


def log_line(line: str, second: int = 36, end: str = "") -> str:
    return f'192.0.2.1 - eve [10/Oct/2025:13:55:{second} +0200] "{line}" 200 -{end}'


def caddy_line(uri: str, ts: object = 1.5, **changes) -> str:
    request = {
        "method": "GET",
        "host": "a.test",
        "uri": uri,
        "headers": {"Accept": ["x/y"], "Cookie": ["REDACTED"]},
    }
    for name in request.keys() & changes.keys():
        request[name] = changes.pop(name)
    line = {
        "ts": ts,
        "logger": "http.log.access.log0",
        "request": request,
        "status": 200,
    }
    return json.dumps(line | changes)


def har_of(*requests: dict, times=()) -> str:
    entries = []
    for request, time in zip_longest(requests, times):
        whole = {"method": "GET", "headers": [], **request}
        entries.append({"request": whole, "startedDateTime": time})
    return json.dumps({"log": {"entries": entries}})


@pytest.fixture
def replay(tmp_path):
    def write(*lines: str, **fields) -> Workload:
        path = tmp_path / "recorded"
        path.write_text("\n".join(lines), encoding="utf-8")
        return make_workload(replay=str(path), **fields)

    return write


def recorded_for(workload: Workload) -> Recorded:
    return read_recorded_requests(workload.replay)


def lines_of(recorded: Recorded) -> list[str]:
    return [f"{request.method} {request.url}" for request in recorded.requests]


def starts_of(schedule) -> list[float]:
    return [schedule.start_of(number) for number in range(schedule.count)]


@pytest.mark.parametrize(
    "end", ["", ' "http://a.test/" "Mozilla \\"x\\"" "203.0.113.7"']
)
def test_equal_requests_of_an_access_log_become_one_with_a_weight(replay, end):
    """POST, the bytes of a TLS handshake, a timeout and OPTIONS * are left out."""
    wanted = ("GET /a?b=c HTTP/1.1", "HEAD / HTTP/2.0", "GET /a?b=c HTTP/1.0")
    others = ("POST /a HTTP/1.1", "\\x16\\x03", "-", "OPTIONS * HTTP/1.0")
    lines = [log_line(line, end=end) for line in (*wanted, *others)]
    recorded = recorded_for(replay(*lines, ""))
    assert lines_of(recorded) == ["GET /a?b=c", "HEAD /"]
    assert recorded.weights == [2, 1]
    for request in recorded.requests:
        assert request.body is None
    assert re.findall(r"(?:^|, )(\d+) ", recorded.left_out) == ["1", "3"]
    once = recorded_for(replay(*lines[:2]))
    assert lines_of(once) == ["GET /a?b=c", "HEAD /"]
    assert once.weights == []
    assert once.left_out == ""


def test_a_log_of_caddy_has_other_lines_and_other_hosts(replay):
    """Caddy logs a failed request twice, and hides credentials."""
    lines = (
        '{"level": "info", "msg": "serving"}',
        caddy_line("/1"),
        caddy_line("/2", host="A.test"),
        caddy_line("/3", host="b.test"),
        caddy_line("/1", logger="http.log.error"),
    )
    recorded = recorded_for(replay(*lines))
    assert lines_of(recorded) == ["GET /1", "GET /2"]
    assert recorded.requests[0].headers == {"Accept": "x/y"}
    others = "2 that are not HTTP requests, 1 for other hosts than a.test"
    assert recorded.left_out == others


TRAEFIK = [
    {
        "RequestMethod": "GET",
        "RequestPath": "/1",
        "RequestAddr": "a.test",
        "StartUTC": f"2026-03-01T10:00:{second:09.6f}00Z",
        "Duration": 10**9,
        "time": "2026-03-01T10:00:09Z",
    }
    for second in (0.125, 1.5)
]
ENVOY_GATEWAY = [
    {
        ":authority": "a.test",
        "method": "GET",
        "x-envoy-origin-path": "/1",
        "response_code": 200,
        "start_time": f"2026-03-01T10:00:{second:06.3f}Z",
    }
    for second in (0.125, 1.5)
]
ISTIO = [
    {
        "authority": "a.test",
        "method": one["method"],
        "path": "/1",
        "start_time": one["start_time"],
    }
    for one in ENVOY_GATEWAY
]
OTHER_MESSAGE = {"level": "info", "time": "2026-03-01T10:00:00Z", "message": "Starting"}
TCP = {
    "method": None,
    "x-envoy-origin-path": None,
    "start_time": "2026-03-01T10:00:00Z",
    "path": None,
}
ALB = (
    "{kind} 2026-03-01T10:00:09.9Z app/shop/50dc 192.0.2.10:40112 - -1 -1 -1 {status} -"
    ' 34 366 "{line}" "an \\"agent\\"" - - - "Root=1-58" "-" "-" 0'
    ' 2026-03-01T10:00:{second:09.6f}Z "forward" "-" "-" "-" "-" "-" "-"'
)
ENVOY = (
    '[2026-03-01T10:00:{second:06.3f}Z] "{line}" {status} UAEX {more}0 11 4 - "-"'
    ' "curl/8" "6b0e" "{host}" "-"{end}'
)


def envoy_lines(**parts) -> list[str]:
    parts = {"more": "", "end": "", "status": 200, "host": "a.test", **parts}
    lines = [
        ("GET /1 HTTP/2", {"second": 0.125}),
        ("GET /1 HTTP/1.1", {"second": 1.5}),
        ("GET /2 HTTP/1.1", {"second": 2, "host": "b.test:8443"}),
        ("- - -", {"second": 3}),
    ]
    return [ENVOY.format(line=line, **(parts | own)) for line, own in lines]


OTHER_LOGS = {
    "traefik": [
        *map(json.dumps, (OTHER_MESSAGE, *TRAEFIK)),
        json.dumps({**TRAEFIK[0], "RequestAddr": "b.test"}),
    ],
    "envoy gateway": [
        *map(json.dumps, (TCP, *ENVOY_GATEWAY)),
        json.dumps({**ENVOY_GATEWAY[0], ":authority": "b.test"}),
    ],
    "istio": [
        *map(json.dumps, (TCP, *ISTIO)),
        json.dumps({**ISTIO[0], "authority": "b.test"}),
    ],
    "envoy": envoy_lines(),
    "istio text": envoy_lines(
        more='via_upstream - "-" ',
        end=" outbound|80||a.test 10.0.0.1:1 10.0.0.2:80 - default",
    ),
    "alb": [
        ALB.format(kind=kind, second=second, status=status, line=line)
        for kind, second, status, line in (
            ("http", 0.125, 200, "GET http://a.test:80/1 HTTP/1.1"),
            ("h2", 1.5, 502, "GET https://A.test:443/1 HTTP/2.0"),
            ("https", 2, 200, "GET https://b.test:443/ HTTP/1.1"),
            ("http", 3, 400, "- http://a.test:80- -"),
        )
    ],
}


@pytest.mark.parametrize(
    "prefix", ["", "proxy-1  | ", "web | 2026-03-02T11:00:00.123456789Z "]
)
@pytest.mark.parametrize("lines", OTHER_LOGS.values(), ids=OTHER_LOGS)
def test_logs_of_other_proxies_have_hosts_and_starts(replay, lines, prefix):
    """Also with the prefix of `docker compose logs`.

    Times are the starts, not the ends that the lines also have.
    """
    prefixed = [prefix + line for line in lines]
    recorded = recorded_for(replay(*prefixed))
    assert lines_of(recorded) == ["GET /1"]
    assert recorded.weights == [2]
    assert sorted(recorded.left_out.split(", ")) == [
        "1 for other hosts than a.test",
        "1 that are not HTTP requests",
    ]
    timed = recorded_for(replay(*prefixed, replay_times=True))
    assert list(timed.times) == pytest.approx([0, 1.375])


@pytest.mark.parametrize(
    ("line", "good"),
    [
        (
            log_line("GET /2 HTTP/1.1").replace(" 200 -", " - -"),
            log_line("GET /1 HTTP/1.1"),
        ),
        (envoy_lines(status="-")[0], log_line("GET /1 HTTP/1.1")),
        (OTHER_LOGS["alb"][0].replace(" 200 -", " - -"), OTHER_LOGS["alb"][0]),
    ],
)
def test_a_line_without_a_status_is_left_out_alone(replay, line, good):
    """The answer of another line is known, and so is its request."""
    recorded = recorded_for(replay(line, good))
    assert lines_of(recorded) == ["GET /1"]
    assert recorded.left_out == "1 without a status"


def test_targets_of_vegeta_have_lists_of_headers_and_bodies_in_base64(replay):
    lines = (
        {"method": "GET", "url": "http://a.test/1"},
        {
            "method": "PUT",
            "url": "http://a.test/2",
            "body": "aGk=",
            "header": {"X": ["1", "2"], "Cookie": ["a", "b"]},
        },
    )
    first, second = recorded_for(replay(*map(json.dumps, lines))).requests
    assert first.url == "/1"
    assert second.method == "PUT"
    assert second.body == b"hi"
    assert second.headers == {"X": "1, 2", "Cookie": "a; b"}
    may_be_text = {"method": "PUT", "url": "http://a.test", "body": "aGk="}
    with pytest.raises(FieldError, match="line 1: its body"):
        recorded_for(replay(json.dumps(may_be_text)))


def test_form_parameters_of_a_har_are_encoded_and_parts_of_files_refused(replay):
    params = [{"name": "q", "value": "a b&"}, {"name": "e"}]
    posted = {"mimeType": "application/x-www-form-urlencoded", "params": params}
    form = {"method": "POST", "url": "http://a.test/", "postData": posted}
    (request,) = recorded_for(replay(har_of(form))).requests
    assert request.body == b"q=a+b%26&e="
    assert request.headers == {"Content-Type": posted["mimeType"]}
    parts = posted | {"mimeType": "multipart/form-data; boundary=x"}
    har = har_of(form, form | {"postData": parts})
    with pytest.raises(FieldError, match=r"entry 2: .*parameters"):
        recorded_for(replay(har))
    skipped = recorded_for(replay(har, skip_bad=True))
    assert skipped.left_out == "1 that cannot be read"


@pytest.mark.parametrize(
    "lines",
    [
        [
            "import http from 'k6/http';",
            "export default () => { http.get('http://a.test'); }",
        ],
        ["from locust import HttpUser"],
        ['{"info": {"schema": "https://schema.getpostman.com/v2"}, "item": []}'],
        ["{", '  "openapi": "3.1.0"', "}"],
        ["[]"],
        ["GET http://a.test/"],
        ["hello", "world"],
    ],
)
def test_another_format_is_refused_with_those_that_are_supported(replay, lines):
    formats = r"HAR.*JSON Lines.*vegeta.*Caddy.*nginx"
    with pytest.raises(FieldError, match=formats) as refusal:
        recorded_for(replay(*lines, skip_bad=True))
    assert "\n" not in str(refusal.value)


def test_an_entry_that_cannot_be_read_is_named_or_skipped_and_counted(replay):
    """Its content is not shown, since it may hold a secret."""
    lines = (
        log_line("GET /a HTTP/1.1"),
        log_line("GET /{}?token=hush HTTP/1.1"),
        "token=hush",
    )
    with pytest.raises(FieldError, match=r"line 2: .*skip_bad") as refusal:
        recorded_for(replay(*lines))
    assert "hush" not in str(refusal.value)
    recorded = recorded_for(replay(*lines, skip_bad=True))
    assert lines_of(recorded) == ["GET /a"]
    assert recorded.left_out == "2 that cannot be read"
    with pytest.raises(FieldError, match="no request that can be sent; left out: 1 "):
        recorded_for(replay(log_line("POST /a HTTP/1.1")))


TIMED_LOG = [
    log_line("GET /0 HTTP/1.1", 30),
    log_line("GET /1 HTTP/1.1", 30),
    log_line("GET /2 HTTP/1.1", 31),
    log_line("GET /3 HTTP/1.1", 30),
    log_line("GET /4 HTTP/1.1", 33),
]
TIMED_CADDY = [
    caddy_line("/0", 100.5, duration=0.5),
    caddy_line("/1", 101.75, duration=2),
    caddy_line("/2", 100.25),
]
TIMED_HAR = har_of(
    {"url": "http://a.test/0"},
    {"url": "http://a.test/1"},
    times=["2025-10-10T13:55:36.250Z", "2025-10-10T15:55:36.125+02:00"],
)


@pytest.mark.parametrize(
    ("lines", "starts", "order"),
    [
        (TIMED_LOG, [0, 1 / 3, 2 / 3, 1, 3], "01324"),
        (TIMED_CADDY, [0, 0.25, 0.5], "102"),
        ([TIMED_HAR], [0, 0.125], "10"),
    ],
    ids=["access log", "caddy", "har"],
)
def test_recorded_times_are_the_schedule_of_an_open_load(replay, lines, starts, order):
    """Sorted, and relative to the first. Shards keep the start of every request."""
    workload = pin_recorded_requests(replay(*lines, replay_times=True, shards=2))
    check_load(workload)
    assert is_open(workload)
    assert is_warm(workload)
    count = len(starts)
    assert workload.load.requests == count
    assert lines_of(recorded_for(workload)) == [f"GET /{name}" for name in order]
    schedule = arrivals_of(workload)
    assert starts_of(schedule) == pytest.approx(starts)
    assert schedule.length == pytest.approx(starts[-1] * count / (count - 1))
    assert schedule.due(-1.0) == 0
    for number, start in enumerate(starts, start=1):
        assert schedule.due(start + 1e-6) == number
    assert longest_pause(workload) <= schedule.length
    first = take_share(workload, 0, 2)
    second = take_share(workload, 1, 2)
    assert starts_of(arrivals_of(first)) == pytest.approx(starts[::2])
    assert starts_of(arrivals_of(second)) == pytest.approx(starts[1::2])
    assert requests_in(first) + requests_in(second) == count


@pytest.mark.parametrize(
    ("moments", "starts"),
    [
        ([100, 100.5, 5000, 5000.25, 9e6], [0, 0.5, 2.5, 2.75, 4.75]),
        ([100.5, 101.5], [0, 1]),
    ],
)
def test_longer_gaps_of_a_recording_are_shortened(replay, moments, starts):
    lines = [caddy_line("/", moment) for moment in moments]
    recorded = recorded_for(replay(*lines, replay_times=True))
    assert recorded.times[-1] == moments[-1] - moments[0]
    workload = pin_recorded_requests(replay(*lines, replay_times=True, max_gap=2.0))
    check_load(workload)
    assert starts_of(arrivals_of(workload)) == pytest.approx(starts)


@pytest.mark.parametrize(
    ("lines", "fields", "key"),
    [
        (['{"path": "/"}'], {}, "replay_times"),
        ([caddy_line("/")], {"max_gap": 2.0, "replay_times": False}, "max_gap"),
        ([log_line("GET / HTTP/1.1")], {}, "replay"),
        ([caddy_line("/", None), caddy_line("/")], {}, "replay"),
        (TIMED_LOG, {"requests": 3}, "requests"),
        (TIMED_LOG, {"duration": 3.0}, "duration"),
        (TIMED_LOG, {"rate": 3.0}, "rate"),
        (TIMED_LOG, {"arrivals": "poisson"}, "arrivals"),
    ],
)
def test_recorded_times_need_times_and_no_other_schedule(replay, lines, fields, key):
    workload = replay(*lines, **{"replay_times": True} | fields)
    with pytest.raises(FieldError) as refusal:
        check_load(pin_recorded_requests(workload))
    assert refusal.value.key == (key,)
