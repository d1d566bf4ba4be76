"""Both frameworks' development servers."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pytest

from running import FRAMEWORKS, Server, ask, development

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.real


@pytest.fixture(scope="module", params=FRAMEWORKS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Each framework's development server in turn."""
    with development(request.param) as started:
        yield started


def test_the_contract_holds(server: Server) -> None:
    assert server.ask("/").body == b'{"message": "hello"}\n'
    assert server.ask("/status/418").status == 418
    assert "MOCKUPSTREAM_MAX_DELAY" in json.loads(server.ask("/?delay=61s").body)["error"]
    assert len(server.ask("/stream/1000?chunk=300").body) == 1000
    assert json.loads(server.ask("/echo", "POST", b"x" * 1000).body)["body"]["length"] == 1000
    assert server.ask("/nope").status == 404
    assert server.ask("/bytes/100000", "HEAD").headers["Content-Length"] == "100000"


def test_connections_persist_in_aiohttp_alone(server: Server) -> None:
    """The server of aiohttp keeps connections, that of Flask closes each: published comparisons rest on it."""
    before = server.metrics()
    with contextlib.closing(server.connect()) as connection:
        closed = ask(connection, "/").headers["Connection"] == "close"
        ask(connection, "/")
    framework = "flask" if closed else "aiohttp"
    after = server.metrics()
    assert any(f'framework="{framework}"' in name for name in after if name.startswith("mockupstream_info"))
    accepted = "mockupstream_connections_accepted_total"
    assert after[accepted] - before[accepted] == (2 if closed else 1)
