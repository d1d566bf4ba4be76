"""Texts without secrets: the lab writes `…` in place of values of headers and query parameters that carry secrets.

A name decides whether a value is a secret. Error texts come from libraries that quote URLs and headers as they like,
and from servers that may send back what they got. They pass one filter, `TextFilter`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from urllib.parse import unquote, unquote_plus

MARK = "…"
"""In place of a value. No header and no path can hold this character, so it never stands for itself."""

_SECRET_WORDS = frozenset({
    "apikey", "auth", "authentication", "authorization", "cookie", "credential", "credentials", "jwt", "key", "pass",
    "passphrase", "passwd", "password", "pwd", "secret", "session", "sessionid", "sid", "sig", "signature", "token",
})  # fmt: skip
"""A header or a parameter carries a secret if one of these words is in its name, as in ``X-Api-Key``."""

_SECRET_ENDS = ("apikey", "password", "secret", "sessionid", "signature", "sessid", "token")
"""Ends of words that were written together, as in ``accesstoken``."""

_NO_SECRETS = frozenset({"idempotency-key", "sec-websocket-key"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NEVER_SHORT = 4
_PLAIN_LENGTH = 8
"""Characters from which a value counts where its name does not decide: shorter ones are parts of usual words."""

_AFTER_SCHEME = re.compile(r"(?:[A-Za-z][\w-]*) +(\S.*)")
"""``Bearer TOKEN``: libraries quote the token alone, too."""

_CREDENTIALS = re.compile(r"(?<=//)[^\s/?#'\"<>]*@")
_QUERY = re.compile(r"(?<![^\s?'\"<>\\])([^\s?'\"<>\\/]*/[^\s?'\"<>\\]*)\?[^\s'\"<>\\]*")
"""A path with a query, from the beginning of a word only: a text of slashes would take quadratic time."""
_FILE_WITH_SETTINGS = re.compile(r"\.py:\w+$")
"""A strategy of a file, as ``/folder/mine.py:Mine?pool=4``: its settings are no query."""


def is_secret(name: str, kept: Collection[str] = ()) -> bool:
    """Whether the header or the parameter of that name carries a secret. `kept`: names that do not count."""
    lower = name.lower()
    if lower in _NO_SECRETS or lower in {one.lower() for one in kept}:
        return False
    words = [word.lower() for word in _WORD.findall(name)]
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDS) for word in words)


def headers(given: Mapping[str, str], kept: Collection[str] = ()) -> dict[str, str]:
    """The headers with `…` as the value of those that carry secrets."""
    return {name: MARK if is_secret(name, kept) else value for name, value in given.items()}


def path(given: str, kept: Collection[str] = ()) -> str:
    """A path or a URL with `…` as the value of each query parameter that carries a secret, and without a password."""
    before, mark, query = _CREDENTIALS.sub(f"{MARK}@", given).partition("?")
    return before + mark + "&".join(_parameter(part, kept) for part in query.split("&"))


def _parameter(part: str, kept: Collection[str]) -> str:
    name, equals, _ = part.partition("=")
    return f"{name}={MARK}" if equals and is_secret(unquote(name), kept) else part


def without_queries(text: str) -> str:
    """A text with `…` in place of each query of a path or URL, and of each user name and password before a host."""
    return _QUERY.sub(_without_query, _CREDENTIALS.sub(f"{MARK}@", text))


def _without_query(found: re.Match[str]) -> str:
    return found[0] if _FILE_WITH_SETTINGS.search(found[1]) else f"{found[1]}?{MARK}"


class TextFilter:
    """The filter of error texts: no query, no password in a URL, and none of the given secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        found = {form for secret in secrets for form in _forms_of(secret) if len(form) >= _NEVER_SHORT}
        # A longer secret first: a shorter one may be a part of it.
        self._secrets = sorted(found, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, MARK)
        return without_queries(text)


def secrets_of_headers(given: Mapping[str, str]) -> Iterator[str]:
    """The values of headers that carry secrets, and their parts: tokens, passwords, each cookie."""
    for name, value in given.items():
        if not is_secret(name):
            continue
        yield value
        if found := _AFTER_SCHEME.fullmatch(value):
            yield found[1]
            yield from _of_basic(found[1])
        if "=" in value:
            yield from (part.partition("=")[2].strip(' "') for part in re.split("[;,]", value))


def secrets_of_path(given: str) -> Iterator[str]:
    """The values of a path's query. Short ones count only where the name of their parameter decides it."""
    for part in given.partition("?")[2].split("&"):
        name, equals, value = part.partition("=")
        value = value if equals else name
        if len(value) >= _PLAIN_LENGTH or (equals and is_secret(unquote(name))):
            yield value


def _of_basic(encoded: str) -> Iterator[str]:
    """User and password of Basic authentication (RFC 7617)."""
    try:
        pair = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return
    yield pair
    yield pair.partition(":")[2]


def _forms_of(secret: str) -> set[str]:
    """The secret as libraries may print it: decoded, and as in a Python literal."""
    plain = {secret, unquote(secret), unquote_plus(secret)}
    return plain | {repr(form)[1:-1] for form in plain}
