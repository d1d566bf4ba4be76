"""The report as one HTML file: what stands where, that nothing is fetched, and how it
looks in a real browser.
"""

from __future__ import annotations

import re
import shutil

import pytest
from playwright.sync_api import sync_playwright

from clientlab.reports import as_html
from clients.documents import a_hostile_run, a_measured_trial, a_run, a_whole_run
from clients.reports.views import Page
from optional_programs import leave_out

SECTIONS = [
    "answer",
    "claims",
    "compared",
    "times",
    "sweep",
    "table",
    "errors",
    "cautions",
    "latency",
    "course",
    "resources",
    "surroundings",
    "again",
]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(as_html.render(a_whole_run()))


def test_every_section_is_there_and_the_list_of_sections_leads_to_it(page):
    assert [section["id"] for section in page.all("section")] == SECTIONS
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    references = []
    for _, attributes in page.elements:
        references += [value for value in attributes.values() if "#" in (value or "")]
    for reference in references:
        assert re.sub(r"url\(#(\w+)\)|#", r"\1", reference) in ids
    links = [reference[1:] for reference in references]
    assert [link for link in links if link in SECTIONS] == SECTIONS
    for section in page.all("section"):
        assert section["aria-labelledby"] in ids


def test_nothing_is_fetched_and_nothing_is_run(page):
    names = {name for name, _ in page.elements}
    assert not names & {
        "script",
        "img",
        "iframe",
        "link",
        "object",
        "embed",
        "form",
        "base",
    }
    (policy,) = [
        meta["content"]
        for meta in page.all("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert links_outside(page) == ["https://example.org/fast"]
    style = page.text("style")[0]
    assert "url(" not in style
    assert "@import" not in style


def links_outside(page: Page) -> list[str]:
    links = [link["href"] for link in page.all("a")]
    return [link for link in links if not link.startswith("#")]


def test_words_stay_words_wherever_they_come_from():
    words = (
        '</title></style><script>alert(1)</script>"><img src=x onerror=alert(1)>{{ 7 *'
        " 7 }}{% raw %}"
    )
    plain = Page(as_html.render(a_hostile_run(re.sub(r"[^\w ]", "x", words))))
    page = Page(as_html.render(a_hostile_run(words)))
    pairs = zip(page.elements, plain.elements, strict=True)
    for (name, attributes), (plain_name, plain_attributes) in pairs:
        assert name == plain_name
        assert attributes.keys() == plain_attributes.keys()
    assert links_outside(page) == []
    text = " ".join(words.split())
    for section in (
        "answer",
        "times",
        "table",
        "claims",
        "sweep",
        "errors",
        "surroundings",
        "again",
    ):
        assert text in page.section(section), section


def test_the_page_of_a_large_run_stays_below_two_megabytes():
    places = [(arm, 0) for arm in range(30)]
    for route in range(1, 13):
        places += [(0, route), (1, route)]
    trials = [
        a_measured_trial(
            f"s{arm}",
            wall=1 + arm % 7 / 10,
            route=f"r{route}",
            arm=f"s{arm} by r{route}",
        )
        for arm, route in places
    ]
    text = as_html.render(a_run(*trials))
    assert len(text.encode()) < 2_000_000
    assert len(Page(text).all("table")) >= 13


OPEN_ALL = (
    "() => document.querySelectorAll('details').forEach((d) => { d.open = true; })"
)
TOO_WIDE = (
    "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
)
STYLE = (
    "(element) => [getComputedStyle(document.body).backgroundColor,"
    " getComputedStyle(element).fill]"
)
LETTERS = """() => [...document.querySelectorAll('svg text')]
    .filter((text) => text.getClientRects().length)
    .map((text) =>
        parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"""


@pytest.mark.real
def test_everything_is_readable_on_every_screen(tmp_path):
    """Nothing is wider than the screen, letters of charts have 11 pixels, and names are
    light on a dark page.

    Nothing is said on the console, and nothing but the file is asked for.
    """
    names = ("chromium", "chromium-browser", "google-chrome")
    programs = [path for path in map(shutil.which, names) if path]
    if not programs:
        leave_out(
            "no Chromium on this machine, so no browser opened the page; apt-get"
            " install chromium"
        )
    file = tmp_path / "report.html"
    said = []
    asked = []
    file.write_text(as_html.render(a_whole_run()), encoding="utf-8")
    with sync_playwright() as playwright:
        # CI's user is root.
        browser = playwright.chromium.launch(
            executable_path=programs[0], args=["--no-sandbox"]
        )
        for width, scheme in ((1300, "dark"), (390, "light")):
            context = browser.new_context(
                viewport={"width": width, "height": 800}, color_scheme=scheme
            )
            page = context.new_page()
            for event in ("console", "pageerror", "dialog"):
                page.on(event, lambda found: said.append(found))  # noqa: PLW0108 - a builtin takes no attributes
            page.on("request", lambda request: asked.append(request.url))
            page.goto(file.as_uri())
            page.evaluate(OPEN_ALL)
            sections = page.locator("section:visible").all()
            ids = [section.get_attribute("id") for section in sections]
            assert ids == SECTIONS
            assert page.evaluate(TOO_WIDE) <= 0
            assert min(page.evaluate(LETTERS)) >= 11
            style = page.locator("svg text").first.evaluate(STYLE)
            ground, ink = (sum(map(int, re.findall(r"\d+", rgb))) for rgb in style)
            assert (ground > ink) == (scheme == "light")
            figures = page.locator("figure:visible").count()
            assert figures > 0
            assert page.locator("figure svg:visible").count() == figures
        browser.close()
    assert said == []
    assert asked == [file.as_uri()] * 2
