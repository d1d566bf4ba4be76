"""Request headers in one form, whichever framework read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by lower-case name, sorted, repeated ones joined by a comma (RFC 9110, 5.3).

    Names with an underscore are left out: WSGI cannot tell them from those with a hyphen, and gunicorn drops them.
    """
    values: dict[str, list[str]] = {}
    for name, value in headers:
        if "_" not in name:
            values.setdefault(name.lower(), []).append(value)
    return {name: ",".join(values[name]) for name in sorted(values)}
