"""The report as one HTML file: what stands where, that nothing is fetched, and how it
looks in a real browser.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter

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
    ids = Counter(
        attributes["id"] for _, attributes in page.elements if "id" in attributes
    )
    assert set(ids.values()) == {1}
    references = [
        value
        for _, attributes in page.elements
        for value in attributes.values()
        if value and "#" in value
    ]
    assert {
        re.sub(r"url\(#(\w+)\)|#", r"\1", reference) for reference in references
    } <= set(ids)
    assert [value[1:] for value in references if value[1:] in SECTIONS] == SECTIONS
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
    policy = next(
        m["content"]
        for m in page.all("meta")
        if m.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    outside = [
        link["href"] for link in page.all("a") if not link["href"].startswith("#")
    ]
    assert outside == ["https://example.org/fast"]
    assert not [
        word
        for word in page.text("style")[0].split()
        if "url(" in word or "@import" in word
    ]


def test_words_stay_words_wherever_they_come_from():
    words = (
        '</title></style><script>alert(1)</script>"><img src=x onerror=alert(1)>{{ 7 *'
        " 7 }}{% raw %}"
    )
    plain, page = (
        Page(as_html.render(a_hostile_run(text)))
        for text in (re.sub(r"[^\w ]", "x", words), words)
    )
    assert [name for name, _ in page.elements] == [name for name, _ in plain.elements]
    assert [sorted(attributes) for _, attributes in page.elements] == [
        sorted(a) for _, a in plain.elements
    ]
    assert [
        link["href"] for link in page.all("a") if not link["href"].startswith("#")
    ] == []
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
    places = [
        *((arm, 0) for arm in range(30)),
        *((arm, route) for arm in range(2) for route in range(1, 13)),
    ]
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
    program = next(
        filter(
            None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
        ),
        None,
    )
    if program is None:
        leave_out(
            "no Chromium on this machine, so no browser opened the page; apt-get"
            " install chromium"
        )
    file = tmp_path / "report.html"
    said = []
    asked = []
    file.write_text(as_html.render(a_whole_run()), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"]
        )  # CI's user is root
        for width, scheme in ((1300, "dark"), (390, "light")):
            page = browser.new_context(
                viewport={"width": width, "height": 800}, color_scheme=scheme
            ).new_page()
            for event in ("console", "pageerror", "dialog"):
                page.on(event, lambda found: said.append(found))  # noqa: PLW0108 - a builtin takes no attributes
            page.on("request", lambda request: asked.append(request.url))
            page.goto(file.as_uri())
            page.evaluate(OPEN_ALL)
            assert [
                section.get_attribute("id")
                for section in page.locator("section:visible").all()
            ] == SECTIONS
            assert page.evaluate(TOO_WIDE) <= 0
            assert min(page.evaluate(LETTERS)) >= 11
            style = page.locator("svg text").first.evaluate(STYLE)
            ground, ink = (sum(map(int, re.findall(r"\d+", one))) for one in style)
            assert (ground > ink) == (scheme == "light")
            assert (
                page.locator("figure:visible").count()
                == page.locator("figure svg:visible").count()
                > 0
            )
        browser.close()
    assert said == []
    assert asked == [file.as_uri()] * 2
