"""The report in a real browser: Debian's Chromium, driven by Playwright, which downloads none of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Page

from browser import headless_chromium
from clientlab.reports import as_html
from clients.report_runs import a_hostile_run, a_whole_run
from clients.reports.test_html import SECTIONS

pytestmark = pytest.mark.real

SCREENS = {"wide, dark": (1280, "dark"), "telephone": (360, "light")}

OPEN_ALL = "() => document.querySelectorAll('details').forEach((d) => { d.open = true; })"
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
GROUND = "() => getComputedStyle(document.body).backgroundColor"
WHITE = "rgb(255, 255, 255)"


@dataclass
class Opened:
    """A page, what it said on its console, and the addresses that it asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def chromium():
    """A headless browser."""
    with headless_chromium() as browser:
        yield browser


@pytest.fixture
def opened(chromium, tmp_path):
    """Open a run's report on a screen."""
    contexts = []

    def open_(run, width: int = 1280, scheme: str = "light") -> Opened:
        file = tmp_path / "report.html"
        as_html.write(run, file)
        contexts.append(chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme))
        found = Opened(contexts[-1].new_page())
        found.page.on("console", lambda message: found.said.append(message.text))
        found.page.on("pageerror", lambda error: found.said.append(str(error)))
        found.page.on("dialog", lambda dialog: found.said.append(dialog.message))
        found.page.on("request", lambda request: found.asked.append(request.url))
        found.page.goto(file.as_uri())
        assert found.asked == [file.as_uri()]
        return found

    yield open_
    for context in contexts:
        context.close()


@pytest.mark.parametrize("screen", SCREENS)
def test_every_section_is_seen_on_every_screen(screen, opened):
    """Nothing on the console, nothing asked of the network, and nothing wider than the screen."""
    width, scheme = SCREENS[screen]
    shown = opened(a_whole_run(), width, scheme)
    sections = shown.page.locator("section").all()
    assert len(sections) == len(SECTIONS)
    for section in sections:
        assert section.is_visible()
        assert section.get_by_role("heading").first.is_visible()
    assert shown.page.evaluate(TOO_WIDE) <= 0
    shown.page.evaluate(OPEN_ALL)
    assert shown.page.evaluate(TOO_WIDE) <= 0
    assert (shown.page.evaluate(GROUND) == WHITE) == (scheme == "light")
    assert (shown.said, len(shown.asked)) == ([], 1)


def test_hostile_words_do_nothing(opened):
    """No script runs, nothing is asked for, and the page is no wider."""
    words = '</title></style><script>alert(1)</script>"><img src=x onerror=alert(1)>'
    shown = opened(a_hostile_run(words), 360)
    shown.page.evaluate(OPEN_ALL)
    assert shown.page.locator("script, img").count() == 0
    assert shown.page.locator("h1").inner_text() == words
    assert shown.page.evaluate(TOO_WIDE) <= 0
    assert (shown.said, len(shown.asked)) == ([], 1)
