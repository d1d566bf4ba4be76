"""Cookie jars that stay empty, for libraries that would store cookies and send them back."""

from __future__ import annotations

from http.cookiejar import CookieJar, DefaultCookiePolicy


def no_cookies() -> DefaultCookiePolicy:
    """A policy that accepts no cookie."""
    return DefaultCookiePolicy(allowed_domains=[])


def empty_jar() -> CookieJar:
    """A jar that stays empty."""
    return CookieJar(no_cookies())
