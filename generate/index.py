"""docs/index.md, the first page of the site: the README, with links as they are below docs/."""

from __future__ import annotations

import re
from pathlib import Path

_README = Path(__file__).parents[1] / "README.md"
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)]+)\)")


def home_page() -> str:
    """The README's text. A link into docs/ stays one; any other file is not on the site, so its name is shown."""
    return _LINK.sub(_moved, _README.read_text(encoding="utf-8"))


def _moved(link: re.Match[str]) -> str:
    picture, text, target = link.groups()
    if target.startswith("docs/"):
        return f"{picture}[{text}]({target.removeprefix('docs/')})"
    return f"`{target}`"
