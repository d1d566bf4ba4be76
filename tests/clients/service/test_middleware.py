"""Whom the service answers: by token, host, origin and size; and what it shows of those it refused."""

from __future__ import annotations

import asyncio

import pytest

from clientlab.service.middleware import REQUESTS, known_hosts
from clientlab.service.request_checks import RESULT_BODY, SMALL_BODY
from clients.service.requests_to_lab import BEARER, SAME_ORIGIN, TOKEN, asked, form, listening, serving, status_line


@pytest.mark.parametrize("path", ["/api/assignments", "/api/heartbeats", "/api/results", "/api/runs"])
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer another"}, {"Authorization": TOKEN + "x"}])
def test_who_does_not_know_the_token_is_refused(store, path, headers):
    """Before a word of the body is read."""
    status, text, _ = asked(store, "POST", path, headers=headers, content=b"x" * 10)
    assert status == 401
    assert "wrong token" in text


def test_a_token_that_is_no_text_and_a_path_with_a_line_break_are_refused_in_one_line(store, caplog):
    """Bytes that are no UTF-8 are the wrong token, and no path writes a line of its own into the log."""

    async def go():
        async with listening(store) as port:
            forged = b"POST /runs/x%0A2026%20forged/again HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
            token = b"POST /api/assignments HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \xff\xfe\r\n\r\n"
            return await status_line(port, forged), await status_line(port, token)

    forged, token = asyncio.run(go())
    assert b" 403 " in forged
    assert b" 401 " in token
    said = [record.getMessage() for record in caplog.records if record.name == REQUESTS]
    assert any("x%0A2026%20forged" in line for line in said)
    assert not any("\n" in line for line in said)


def test_a_service_without_a_token_trusts_everybody(store):
    """It listens on loopback only; the command sees to that."""
    status, text, _ = asked(store, "POST", "/api/runs", token="", json={"experiment": "none"})
    assert (status, "is unknown" in text) == (409, True)


@pytest.mark.parametrize(
    ("path", "size"), [("/api/assignments", SMALL_BODY), ("/api/runs", SMALL_BODY), ("/api/results", RESULT_BODY)]
)
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_refused_with_the_limit(store, path, size, chunked):
    """Whether its length is said beforehand or not."""

    async def pieces():
        for _ in range(size // 1024 + 1):
            yield b"x" * 1024

    body = pieces() if chunked else b"x" * (size + 1)
    headers = {**BEARER, "Content-Type": "application/json"}
    status, text, _ = asked(store, "POST", path, headers=headers, content=body)
    assert status == 413
    assert f"larger than {size:,} bytes" in text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.test"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "http://evil.test"}, 403),
        ({"Origin": "http://["}, 403),
        (SAME_ORIGIN, 409),
    ],
)
def test_a_form_of_another_site_is_refused(store, headers, status):
    """A browser says where it comes from; without a word of it nothing is begun."""
    assert asked(store, "POST", "/stop", **form() | {"headers": headers})[0] == status


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:1", 200), ("127.0.0.1:9", 200), ("[::1]:8", 200), ("lab:8080", 200), ("LAB", 200),
     ("10.1.2.3:8080", 200), ("[fe80::1]:8", 200), ("evil.test", 421), ("evil.test:8000", 421), ("lab.evil.test", 421),
     ("10.1.2.3.evil.test", 421), ("[", 421)],
)  # fmt: skip
def test_the_service_answers_only_to_its_own_names(store, host, status):
    """And to any address. A name of another site that leads here is refused, with the variable that allows it."""
    got, text, _ = asked(store, "GET", "/api/state", headers={"Host": host})
    assert got == status
    assert ("LAB_HOSTS" in text) == (status == 421)


def test_a_request_that_names_no_host_is_answered(store):
    """As a health check may be; no browser leaves it out."""

    async def go():
        async with listening(store) as port:
            return await status_line(port, b"GET /api/state HTTP/1.0\r\n\r\n")

    assert b" 200 " in asyncio.run(go())


def test_names_of_the_variable_are_known_as_well():
    """Beside the host that it listens on."""
    assert {"mine.test", "two.test", "10.0.0.5", "lab"} <= known_hosts("10.0.0.5", " Mine.test,two.test,")
    assert "" not in known_hosts("", "")


def test_what_was_refused_is_on_the_page_escaped_and_bounded(store):
    """The last ten, with the reason."""

    async def go():
        async with serving(store) as client:
            for number in range(12):
                assert (await client.post(f"/api/assignments?<b>{number}")).status_code == 401
            refusals = (await client.get("/api/state")).json()["refusals"]
            return refusals, (await client.get("/")).text

    refusals, page = asyncio.run(go())
    assert len(refusals) == 10
    assert "401, wrong token" in refusals[-1]
    assert page.count("401, wrong token") == 10
    assert "<b>" not in page


def test_a_key_in_the_query_of_a_refused_request_is_nowhere(store, caplog):
    """The log and the list of refusals show that there was a query, and nothing of it."""

    async def go():
        async with serving(store) as client:
            for path in ("/stop", "/start", "/runs/x/again"):
                assert (await client.post(f"{path}?key=SECRET123", headers=SAME_ORIGIN)).status_code == 403
            return (await client.get("/api/state")).text + (await client.get("/")).text

    shown = asyncio.run(go()) + caplog.text
    assert "SECRET123" not in shown
    assert shown.count("POST /stop?… from") == 3


def test_the_name_of_an_unknown_field_can_neither_fill_the_log_nor_command_a_terminal(store, caplog):
    """It is in the line of the refusal, shortened and printable."""

    async def go():
        async with serving(store) as client:
            document = {"x" * 900: 1, "worker": "a" * 16, "run": "r", "order": 0, "finished": 0}
            assert (await client.post("/api/heartbeats", headers=BEARER, json=document)).status_code == 422
            document = {"\x1b]0;mine\x07\n": 1, "worker": "a" * 16, "run": "r", "order": 0, "finished": 0}
            assert (await client.post("/api/heartbeats", headers=BEARER, json=document)).status_code == 422
            return (await client.get("/api/state")).json()["refusals"]

    refusals = asyncio.run(go())
    said = [record.getMessage() for record in caplog.records if record.name == REQUESTS]
    assert len(refusals) == len(said) == 2
    assert all(line.isprintable() and len(line) <= 310 for line in [*refusals, *said])


@pytest.mark.parametrize("path", ["/", "/api/state", "/nothing", "/metrics"])
def test_every_answer_forbids_what_the_page_does_not_need(store, path):
    """No inline script or style, no frame, no guessing of types."""
    headers = asked(store, "GET", path)[2]
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
