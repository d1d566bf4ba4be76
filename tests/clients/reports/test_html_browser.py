"""The report in a real browser: Debian's Chromium, driven by Playwright, which downloads none of its own."""

from __future__ import annotations

import re

import pytest

from browser import headless_chromium
from clientlab.reports import as_html
from clients.report_runs import a_whole_run
from clients.reports.test_html import SECTIONS

pytestmark = pytest.mark.real

OPEN_ALL = "() => document.querySelectorAll('details').forEach((d) => { d.open = true; })"
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
STYLE = "(element) => [getComputedStyle(document.body).backgroundColor, getComputedStyle(element).fill]"
LETTERS = """() => [...document.querySelectorAll('svg text')].filter((text) => text.getClientRects().length)
    .map((text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"""


@pytest.fixture
def opened(tmp_path):
    """Open a run's report. After the test, nothing was said on the console, and nothing but the file was asked for."""
    file, said, asked = tmp_path / "report.html", [], []
    with headless_chromium() as browser:

        def open_(run, width: int, scheme: str = "light"):
            as_html.write(run, file)
            page = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme).new_page()
            for event in ("console", "pageerror", "dialog"):
                page.on(event, lambda found: said.append(found))  # noqa: PLW0108 - a builtin takes no attributes
            page.on("request", lambda request: asked.append(request.url))
            page.goto(file.as_uri())
            page.evaluate(OPEN_ALL)
            return page

        yield open_
    assert (said, asked) == ([], [file.as_uri()])


@pytest.mark.parametrize(("width", "scheme"), [(1300, "dark"), (390, "light")])
def test_everything_is_readable_on_every_screen(width, scheme, opened):
    """Nothing is wider than the screen, letters of charts have 11 pixels, and names are light on a dark page."""
    page = opened(a_whole_run(), width, scheme)
    assert [section.get_attribute("id") for section in page.locator("section:visible").all()] == SECTIONS
    assert page.evaluate(TOO_WIDE) <= 0
    assert min(page.evaluate(LETTERS)) >= 11
    ground, ink = (sum(map(int, re.findall(r"\d+", one))) for one in page.locator("svg text").first.evaluate(STYLE))
    assert (ground > ink) == (scheme == "light")
    assert page.locator("figure:visible").count() == page.locator("figure svg:visible").count() > 0
