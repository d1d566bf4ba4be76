"""What all bare loops share: the options that the lab pins, and the look at each answer."""

from __future__ import annotations

from collections.abc import Callable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

Run = Callable[[int], None]
"""Sends so many requests, with a client that was made before."""

CONCURRENCY = 32
TIMEOUT = 30.0
HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "clientlab/0.1.0"}


def no_cookies() -> DefaultCookiePolicy:
    """Takes none from any host."""
    return DefaultCookiePolicy(allowed_domains=[])


def empty_jar() -> CookieJar:
    """Stays empty."""
    return CookieJar(no_cookies())


def expect_h2(spoken: bool) -> None:  # noqa: FBT001 - the one thing that it is about
    """Ends the program where another version of HTTP was spoken."""
    if not spoken:
        raise SystemExit("the server spoke HTTP/1")


def expect(status: int, body: bytes) -> None:
    """Ends the program at an answer that is none."""
    if status != 200 or not body:
        raise SystemExit(f"status {status}, {len(body)} bytes")


def niquests_options(connections: int) -> dict[str, Any]:
    """Return the arguments of a session."""
    return {
        "disable_http2": True,
        "disable_http3": True,
        "revocation_configuration": None,
        "pool_connections": 1,
        "pool_maxsize": connections,
    }
