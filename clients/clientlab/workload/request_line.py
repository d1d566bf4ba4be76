"""What a request line and a header may hold, so that all clients send the same bytes.

Libraries quote, refuse or send other characters in different ways (RFC 9110, 5.6.2; RFC 3986).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from clientlab.errors import FieldError
from clientlab.redaction import mask_text

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_NOT_IN_PATH = re.compile(r"[^A-Za-z0-9/?:@!$&'()*+,;=%._~\[\]-]")
_HEADER_VALUE = re.compile(r"[ -~\t]*")


def check_request_line(method: str, path: str, headers: Mapping[str, str]) -> None:
    """Raise FieldError for what clients would send differently, or could not send. `path`: with its query."""
    if not _TOKEN.fullmatch(method):
        raise FieldError(["method"], "write one word, as POST", value=repr(method))
    if not path.startswith("/"):
        raise FieldError(["path"], "write it from the root, as /todos/1", value=repr(path))
    if found := _NOT_IN_PATH.search(path):
        raise FieldError(["path"], f"{found[0]!r} cannot stand in a URL; write it percent-encoded", value=repr(path))
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            line = repr(mask_text(f"{name}: {value}"))
            raise FieldError(["headers"], "write name and value in ASCII, on one line", value=line)
