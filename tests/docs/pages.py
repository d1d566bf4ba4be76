"""The documents that people read: the README, CONTRIBUTING, and the pages
of the site.
"""

from __future__ import annotations

from running import ROOT

DOCS = ROOT / "docs"
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in FILES
}
"""Path from the repository's root → text."""
