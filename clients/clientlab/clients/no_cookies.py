"""Cookies that are dropped, for clients whose library keeps them in a jar and would send them back."""

from __future__ import annotations

from http.cookiejar import CookieJar, DefaultCookiePolicy


def no_cookies() -> DefaultCookiePolicy:
    """A policy that takes none from any host."""
    return DefaultCookiePolicy(allowed_domains=[])


def empty_jar() -> CookieJar:
    """A jar that stays empty."""
    return CookieJar(no_cookies())
