"""The documentation site: built strictly, complete in itself, readable on a telephone."""

from __future__ import annotations

import functools
import http.server
import shutil
import subprocess
import sys
import threading

import pytest

from browser import headless_chromium
from docs.pages import DOCS, ROOT

pytestmark = pytest.mark.real

TELEPHONE = {"width": 390, "height": 900}
PAGES = ("index", "cli", "recipes", "strategies")
"""Pages with a picture, code, and wide tables."""

TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


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


@pytest.fixture
def address(site):
    """The site behind a web server on loopback."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Keep the test's output clean."""

    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_pages_open_in_a_browser_without_an_error(address):
    """No error on the console, no request to another server, nothing beyond the screen's width."""
    messages, requests = [], []
    with headless_chromium() as chromium:
        page = chromium.new_page(viewport=TELEPHONE)
        page.set_default_timeout(90_000)  # milliseconds
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        for name in PAGES:
            page.goto(f"{address}/{name}.html")
            assert page.locator("h1").first.is_visible(), name
            assert page.evaluate(TOO_WIDE) <= 0, name
        page.wait_for_load_state("networkidle")
    assert messages == []
    assert [url for url in requests if not url.startswith(address)] == []
