"""The documentation site: built strictly, complete in itself, readable on a telephone."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from docs.pages import DOCS, ROOT

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built as scripts/check does."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(DOCS, folder / "docs")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=110, check=False)
    assert built.returncode == 0, built.stderr
    return folder / "site"


def test_the_site_has_every_page(site):
    """The strict build fails if a link or an anchor leads nowhere."""
    assert {path.stem for path in DOCS.glob("*.md")} <= {path.stem for path in site.glob("*.html")}
