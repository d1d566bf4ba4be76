"""What a request line and a header may hold, so that all clients send the same bytes.

Libraries quote, refuse or send all other characters differently (RFC 9110, 5.6.2; RFC 3986).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from clientlab.errors import FieldError
from clientlab.redaction import MARK
from clientlab.redaction import headers as headers_without_secrets

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_NOT_IN_PATH = re.compile(r"[^A-Za-z0-9/?:@!$&'()*+,;=%._~\[\]-]")
_HEADER_VALUE = re.compile(r"[ -~\t]*")


def check_request_line(method: str, path: str, headers: Mapping[str, str]) -> None:
    """Raises FieldError for what clients would send differently, or could not send. `path`: with its query."""
    if not _TOKEN.fullmatch(method):
        raise FieldError(["method"], "write one word, as POST", value=repr(method))
    if not path.startswith("/"):
        raise FieldError(["path"], "write it from the root, as /todos/1", value=repr(_shown(path)))
    if found := _NOT_IN_PATH.search(path):
        raise FieldError(["path"], _unfit(found[0]), value=repr(_shown(path)))
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            line = repr(f"{name}: {headers_without_secrets({name: value})[name]}")
            message = (
                "write the value, which no file holds"
                if value == MARK
                else "write name and value in ASCII, on one line"
            )
            raise FieldError(["headers"], message, value=line)


def _shown(path: str) -> str:
    """A path that cannot be sent: its query may hold a secret."""
    before, mark, _ = path.partition("?")
    return before + mark + (mark and MARK)


def _unfit(character: str) -> str:
    if character == MARK:
        return f"{MARK} stands for a value that no file holds; write the value"
    return f"{character!r} cannot stand in a URL; write it percent-encoded"
