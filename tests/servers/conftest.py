"""Both upstreams under gunicorn, started once and shared by all tests."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from running import FRAMEWORKS, Server, gunicorn

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def upstreams() -> Iterator[dict[str, Server]]:
    """Both upstreams by framework, with limits low enough to meet: 10 s, 1 MiB of a
    request and of a response.
    """
    limits = {"max_delay": "10s", "max_body": str(1 << 20), "max_size": str(1 << 20)}
    with ExitStack() as stack:
        yield {
            framework: stack.enter_context(gunicorn(framework, **limits))
            for framework in FRAMEWORKS
        }


@pytest.fixture(params=FRAMEWORKS)
def upstream(request: pytest.FixtureRequest, upstreams: dict[str, Server]) -> Server:
    """Each upstream in turn."""
    return upstreams[request.param]
