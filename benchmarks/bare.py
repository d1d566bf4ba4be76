"""What all bare loops share: the options that the lab pins, and the look at each answer."""

from __future__ import annotations

from http.cookiejar import CookieJar, DefaultCookiePolicy

CONCURRENCY = 32
TIMEOUT = 30.0
HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "clientlab/0.1.0"}


def no_cookies() -> DefaultCookiePolicy:
    """Takes none from any host."""
    return DefaultCookiePolicy(allowed_domains=[])


def empty_jar() -> CookieJar:
    """Stays empty."""
    return CookieJar(no_cookies())


def expect(status: int, body: bytes) -> None:
    """Ends the program at an answer that is none."""
    if status != 200 or not body:
        raise SystemExit(f"status {status}, {len(body)} bytes")
