"""The documentation site: built strictly, complete in itself, readable on a telephone."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading

import pytest

from browser import headless_chromium
from docs.pages import DOCS, ROOT
from running import eventually

pytestmark = pytest.mark.slow

SCREENS = {"desktop": 1440, "telephone": 390}
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def build(folder, *, docs=DOCS) -> subprocess.CompletedProcess[str]:
    """Build the pages of `docs` into `folder`/site, as scripts/check does."""
    shutil.copy(ROOT / "zensical.toml", folder)
    shutil.copytree(docs, folder / "docs", dirs_exist_ok=True)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=110, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    built = build(folder)
    assert built.returncode == 0, built.stderr
    return folder / "site"


BROKEN = {
    "[a page](nowhere.md)": "page does not exist",
    "[a heading](cli.md#nowhere)": "anchor does not exist",
    "[a heading of this page](#nowhere)": "anchor does not exist",
    "[a file of the repository](../README.md)": "page does not exist",
}


def test_a_broken_link_fails_the_build(tmp_path):
    """Each is named with its page and line. Pictures are checked in test_pages: the build does not look at them."""
    pages = tmp_path / "pages"
    shutil.copytree(DOCS, pages)
    (pages / "vocabulary.md").write_text("\n\n".join(["# Vocabulary", *BROKEN]), encoding="utf-8")
    built = build(tmp_path, docs=pages)
    output = re.sub(r"\x1b\[[\d;]*m", "", built.stdout + built.stderr)
    assert built.returncode != 0
    found = re.findall(r"Warning: (.+)\n.*vocabulary\.md:(\d+):", output)
    assert found == [(message, str(3 + 2 * place)) for place, message in enumerate(BROKEN.values())]


def test_nothing_is_loaded_from_the_network(site):
    """Scripts, styles, fonts and pictures are the site's own."""
    for page in site.glob("*.html"):
        if page.name == "chooser.html":  # it holds all that it shows: test_chooser
            continue
        loaded = re.findall(r"<(?:script|img|source|iframe)[^>]*\ssrc=\"?([^\s\">]+)", page.read_text(encoding="utf-8"))
        loaded += re.findall(r"<link[^>]*\shref=\"?([^\s\">]+)", page.read_text(encoding="utf-8"))
        assert loaded
        assert [address for address in loaded if re.match(r"(https?:)?//", address)] == []


@pytest.fixture(scope="module")
def address(site):
    """The site behind a web server on loopback."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Keep the test's output clean."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium():
    """A headless browser."""
    with headless_chromium() as browser:
        yield browser


@pytest.mark.parametrize("screen", SCREENS)
def test_every_page_opens_in_a_browser_without_an_error(chromium, site, address, screen):
    """No error on the console, no request to another server, nothing beyond the screen's width."""
    context = chromium.new_context(viewport={"width": SCREENS[screen], "height": 900})
    context.set_default_timeout(90_000)  # milliseconds: containers may start on the same two cores
    page = context.new_page()
    messages, requests = [], []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    for file in sorted(site.glob("*.html")):
        page.goto(f"{address}/{file.name}")
        assert page.locator("h1").first.is_visible(), file.name
        assert page.evaluate(TOO_WIDE) <= 0, file.name
    page.wait_for_load_state("networkidle")
    assert messages == []
    assert [url for url in requests if not url.startswith(address)] == []
    context.close()


def test_the_search_finds_a_page(chromium, address):
    """A setting's name leads to the page of settings."""
    context = chromium.new_context(viewport={"width": SCREENS["desktop"], "height": 900})
    context.set_default_timeout(90_000)  # milliseconds: containers may start on the same two cores
    page = context.new_page()
    page.goto(f"{address}/index.html", wait_until="networkidle")
    search = page.get_by_placeholder("Search").first

    def opened() -> bool:
        if search.is_visible():
            return True
        page.keyboard.press("Control+k")  # the page ignores the key until its script has run
        return False

    eventually(opened, "the search")
    page.keyboard.type("library_defaults")
    page.locator("a[href$='strategies.html#settings']").first.click()
    page.wait_for_url(re.compile(r"/strategies\.html"))
    context.close()
