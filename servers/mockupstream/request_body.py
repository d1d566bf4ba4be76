"""A request's body while it is read: its length, and as much more as its route needs."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from mockupstream.streams import MOST_KEPT

if TYPE_CHECKING:
    from mockupstream.contract import Route


class RequestBody:
    """Takes the pieces of a body as they arrive. `length` counts their bytes."""

    def __init__(self, route: Route) -> None:
        """Keep the digest or the bytes, if the route needs them."""
        self.length = 0
        self._digest = hashlib.sha256() if route.digest else None
        self._kept = bytearray() if route.keeps else None

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self.length += len(data)
        if self._digest is not None:
            self._digest.update(data)
        if self._kept is not None and self.length <= MOST_KEPT:
            self._kept += data

    @property
    def sha256(self) -> str:
        """The hexadecimal SHA-256 of all pieces; empty if the route does not need it."""
        return "" if self._digest is None else self._digest.hexdigest()

    @property
    def kept(self) -> bytes:
        """All pieces, if the route needs them and they are MOST_KEPT bytes at most together."""
        return bytes(self._kept or b"")
