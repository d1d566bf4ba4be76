"""The key of the page's buttons. Who can only reach the page can read it; who has the key can start and stop runs.

It is no cookie: browsers send the cookies of a host name to all its ports, so Grafana, Prometheus and the upstreams on
``localhost`` would get it (RFC 6265, 8.5). The page's script keeps it in the browser's storage, which belongs to host
and port, and writes it into the forms. It comes to the page after the ``#`` of a link, which is never sent to a server.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clientlab.errors import LabError
from clientlab.worker.token import read_secret, write_secret

KEY = "LAB_KEY"
"""The environment variable with a key of the user's own."""

KEY_FILE = ".page-key"
"""In the results folder, which no worker can read."""

_SAFE = re.compile(r"[A-Za-z0-9._~-]{16,200}")


@dataclass(frozen=True)
class PageKey:
    """The key of a service's page. `own`: the user chose it, so that nobody else has to be told."""

    text: str
    own: bool

    def fits(self, given: str) -> bool:
        """Whether somebody knows the key; in constant time."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.text.encode())

    def line(self, url: str) -> str:
        """The line of the log with the link to the page."""
        if self.own:
            return f"The page: {url}/ (its buttons ask for the key in {KEY})"
        return f"The page, with the key for its buttons: {url}/#key={self.text}"


def page_key(environment: Mapping[str, str], results: Path) -> PageKey:
    """The key in LAB_KEY, or one that is drawn once and kept in the results folder. Raises LabError."""
    own = environment.get(KEY, "")
    if own:
        if not _SAFE.fullmatch(own):
            raise LabError(f"{KEY}: write 16 to 200 letters, digits or any of . _ ~ -, so that nobody can guess it")
        return PageKey(own, own=True)
    path = results / KEY_FILE
    try:
        results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"results folder {results}: {error.strerror}; name another with --out") from error
    write_secret(path, str(path))
    return PageKey(read_secret(path, str(path)), own=False)
