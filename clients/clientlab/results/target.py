"""What a run is measured against: the lab's own upstreams in a testbed, or a server of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from clientlab.validation import DocumentPart


class Target(DocumentPart):
    """The servers of a run. `url` and `ca_file` are of an external server, which the lab does not start."""

    testbed: Literal[
        "local", "compose", "external"
    ]  # local: processes of the lab; compose: servers that run already; external: the user's own
    url: str | None = None  # of the external server
    ca_file: str | None = None  # path of the CA to trust; None: each library's own CAs

    @classmethod
    def external(cls, url: str, ca_file: Path | None) -> Target:
        """The user's own server."""
        return cls(testbed="external", url=url, ca_file=None if ca_file is None else str(ca_file.absolute()))
