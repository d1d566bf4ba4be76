"""Bounds of the service's connections: nobody who is slow, silent or many keeps others from being answered."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import re
import socket

import pytest
from benchmarks.siege import Attackers, attacked, check_health

from clientlab.service import connections, entrance
from clientlab.service.connections import Phase
from clientlab.service.middleware import MOST_LINES, limited
from clientlab.service.request_checks import RESULT_BODY
from clientlab.worker.lab_client import LabClient, WrongToken
from clients.documents import a_run, a_trial
from clients.labs import Labs
from clients.service.requests_to_lab import ASSIGNMENT_REQUEST, BEARER, TOKEN, keep, listening, status_line
from running import eventually, gunicorn

HALF_HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: "
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def request(path: str, *headers: str, length: int = 10, body: str = "") -> bytes:
    """A request of which `body` is sent, and whose body has `length` bytes."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {length}", *headers, "", body]
    return "\r\n".join(lines).encode()


async def ended(port: int, content: bytes) -> bytes:
    """All that is answered until the service closes the connection, within 10 s."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(content)
    try:
        async with asyncio.timeout(10):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def test_half_a_request_is_dropped_after_its_time(store, monkeypatch, caplog):
    """Half a head, and the rest of a body that is not wanted. They are not lines of the log one by one."""
    monkeypatch.setattr(Phase.HEAD, "seconds", 0.2)
    monkeypatch.setattr(Phase.UNREAD, "seconds", 0.2)

    async def go():
        async with listening(store) as port:
            return await asyncio.gather(*(ended(port, HALF_HEAD) for _ in range(30)), ended(port, request("/healthz")))

    *half, refused = asyncio.run(go())
    assert half == [b""] * 30
    assert refused.startswith(b"HTTP/1.1 405 ")
    assert len(caplog.records) <= 2


@pytest.mark.parametrize("path", ["/api/results", "/stop", "/healthz", "/nothing"])
def test_a_compressed_body_is_refused_before_it_is_sent(store, path):
    """On any path, with or without a token: a megabyte can unpack to a gigabyte."""

    async def go():
        async with listening(store) as port:
            return await ended(port, request(path, "Content-Encoding: gzip", length=1 << 20))

    answer = asyncio.run(go())
    assert answer.startswith(b"HTTP/1.1 415 ")
    assert b"Content-Encoding 'gzip': send the body as it is" in answer


def test_a_refused_client_that_still_sends_gets_its_answer(store):
    """A worker with an old token sends a whole result: it has to learn that, or it would send for ever."""
    document = {"run": "x" * (RESULT_BODY - 100)}

    async def go():
        async with listening(store) as port:
            lab = LabClient(f"http://127.0.0.1:{port}", "an old token")
            for _ in range(10):
                with pytest.raises(WrongToken, match="wrong token"):
                    await asyncio.to_thread(lab.post, "/api/results", document)

    asyncio.run(go())


def test_a_body_that_is_late_is_answered_and_the_worker_sends_it_again(store, monkeypatch):
    """A result must not be lost because the machine was busy."""
    monkeypatch.setattr("clientlab.service.request_checks.BODY_SECONDS", 0.2)
    token = f"Authorization: {BEARER['Authorization']}"

    async def go():
        async with listening(store) as port:
            late = request("/api/results", "Content-Type: application/json", token, body="{")
            return await ended(port, late)

    assert asyncio.run(go()).startswith(b"HTTP/1.1 408 ")


def test_many_half_requests_displace_neither_a_health_check_nor_a_worker(store, monkeypatch):
    """There are more than may be open. The oldest of them go; who has shown the token stays."""
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 16)
    monkeypatch.setattr(entrance, "MOST_WAITING", 16)
    poll = json.dumps(ASSIGNMENT_REQUEST)
    head = f"Authorization: Bearer {TOKEN}", "Content-Type: application/json"

    async def go():
        async with listening(store) as port:
            reader, worker = await asyncio.open_connection("127.0.0.1", port)
            worker.write(request("/api/assignments", *head, length=len(poll), body=poll))
            half = []
            for _ in range(100):
                half.append(await asyncio.open_connection("127.0.0.1", port))
                half[-1][1].write(HALF_HEAD)
            line = await status_line(port, HEALTH)
            dropped = await asyncio.gather(*(first_byte(reader) for reader, _ in half[:50]))
            waits = await first_byte(reader, 0.1)
            for _, writer in (*half, (reader, worker)):
                writer.close()
            return line, dropped, waits

    line, dropped, waits = asyncio.run(go())
    assert b" 200 " in line
    assert dropped == [b""] * 50
    assert waits is None


async def first_byte(reader: asyncio.StreamReader, seconds: float = 5) -> bytes | None:
    """A byte; none of a connection that was dropped; None if nothing comes."""
    with contextlib.suppress(ConnectionResetError, TimeoutError):
        async with asyncio.timeout(seconds):
            return await reader.read(1)
        return None
    return b"" if reader.at_eof() or reader.exception() else None


def test_an_answer_that_nobody_takes_is_dropped_after_its_time(store, monkeypatch):
    """It would stay in the memory of the service for ever."""
    monkeypatch.setattr(Phase.ANSWER, "seconds", 0.3)
    run = a_run(a_trial(), question="x" * 16_000_000)
    keep(store, run)

    async def go():
        async with listening(store) as port:
            with socket.socket() as slow:
                slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                slow.connect(("127.0.0.1", port))
                slow.sendall(f"GET /api/runs/{run.run} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                await asyncio.to_thread(eventually, lambda: was_reset(slow), "the connection is reset")

    asyncio.run(go())


def was_reset(connection: socket.socket) -> bool:
    """Whether the other end has reset the connection, without a byte being read."""
    return connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNRESET


def test_refused_requests_do_not_fill_the_log(caplog):
    """The first of ten seconds are lines; the others are counted."""
    log = logging.getLogger("uvicorn.error")
    with limited() as limit:
        for number in range(1000):
            log.warning("request %d", number)
        limit.look()
    assert len(caplog.records) == MOST_LINES


@pytest.mark.slow
def test_a_run_is_measured_whole_under_attack(tmp_path):
    """By clients without the token, more than the lab may have open files. Every health check is answered."""
    asked = (
        'question = "?"\nstrategies = ["http.client"]\nrounds = 2\n[workloads.small]\nrequests = 100\ndelay = "5ms"\n'
    )
    with gunicorn("aiohttp") as upstream, contextlib.ExitStack() as stack:
        labs = Labs(tmp_path, upstream.port, stack)
        lab = labs.serve(asked, files=256)
        with attacked(lab.port, Attackers(half_bodies=60, half_heads=300, bombs=40, bomb_bytes=1 << 24)):
            labs.work(lab, "http.client")
            assert len(check_health(lab.port, 0.5).seconds) > 0
            run = labs.await_end(lab)
        assert [trial.status for trial in run.trials] == ["done"] * 2
        assert len(lab.said.splitlines()) < 100
        assert re.search(r"dropped \d+ connections for lack of room", lab.said)
