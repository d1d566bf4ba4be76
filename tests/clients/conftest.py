"""A server that shares no code with the lab."""

from __future__ import annotations

import pytest

from clientlab.conformance.server import counting_server


@pytest.fixture
def server():
    """A server that answers each request at once."""
    with counting_server() as running:
        yield running
