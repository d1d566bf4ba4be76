"""The chooser: one page for every situation of the atlas, in a real browser, without a network and without a mouse."""

from __future__ import annotations

import re

import pytest

from browser import headless_chromium
from docs.pages import DOCS, ROOT
from findings import atlas, chooser
from findings.situations import answers

pytestmark = pytest.mark.slow

PAGE = DOCS / "chooser.html"


@pytest.fixture(scope="module")
def chromium():
    """A headless browser."""
    with headless_chromium() as browser:
        yield browser


@pytest.fixture
def page(chromium):
    """The page from its file, by a browser that has no network. Nothing may go wrong on it."""
    context = chromium.new_context(viewport={"width": 390, "height": 800}, offline=True)
    found = context.new_page()
    messages = []
    found.on("console", lambda message: messages.append(message.text))
    found.on("pageerror", lambda error: messages.append(str(error)))
    found.goto(PAGE.as_uri())
    yield found
    assert messages == []
    context.close()


def plain(sentence: str) -> str:
    """A sentence without the marks of Markdown."""
    return sentence.replace("`", "")


def shown(page) -> str:
    """The sentence that the page shows; one only."""
    visible = page.locator(".choice:visible")
    assert visible.count() == 1
    return visible.locator(".answer").inner_text()


def test_each_situation_is_found_by_its_settings(page):
    """The sentence, the table and the command are those that the run gives, and each has a picture."""
    choices = chooser.choices_of(atlas.stored())
    assert len({tuple(one.settings.values()) for one in choices}) == len(choices)
    for one in choices:
        for key, value in one.settings.items():
            page.select_option(f"#{key}", value)
        assert shown(page) == plain(one.answer.sentence)
        section = page.locator(f"#answer-{one.answer.situation.key}")
        assert section.locator("pre").inner_text() == one.answer.command
        rows = section.locator("tbody tr")
        assert [cell.strip() for cell in rows.last.all_inner_texts()[0].split("\t")] == one.answer.cells[-1]
        assert section.locator("svg").count() == (len(one.answer.cells) if one.answer.chart else 0)
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_its_answers_are_those_of_choosing_a_client():
    """Each situation of that page that a reader can set is in the chooser, word for word."""
    text = (DOCS / "choosing-a-client.md").read_text(encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    for one in answers(atlas.stored()):
        if one.situation.title:
            assert f"**{one.sentence}**" in text
        if one.situation.title and one.situation.by != "versions":
            assert f'id="answer-{one.situation.key}"' in page
            assert re.sub(r"`([^`]+)`", r"<code>\1</code>", one.sentence) in page


def test_what_was_not_measured_is_said_with_the_nearest_that_was(page):
    """A button leads there, by the keyboard."""
    page.select_option("#code", "blocking")
    page.select_option("#body", "1 MiB")
    page.select_option("#tls", "yes")
    assert page.locator(".choice:visible").count() == 0
    assert page.locator("#unmeasured").is_visible()
    nearest = page.locator("#unmeasured button").first
    nearest.focus()
    page.keyboard.press("Enter")
    assert page.locator("#unmeasured").is_hidden()
    assert shown(page)
    assert page.evaluate("document.activeElement.id") == "code"


def test_the_keyboard_alone_leads_to_an_answer_and_the_address_keeps_it(page):
    """Tab to the first question, and choose by its first letter."""
    before = shown(page)
    page.locator("#code").focus()
    page.keyboard.press("a")
    page.keyboard.press("Tab")
    assert shown(page) != before
    key = page.url.partition("#")[2]
    page.goto(f"{PAGE.as_uri()}#{key}")
    page.reload()
    assert page.locator(f"#answer-{key}").is_visible()
    assert page.evaluate("scrollY") == 0  # the questions stay in sight


def test_it_holds_all_that_it_shows():
    """No address of another place but two pages of the site; and it says when and where it was measured."""
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r'(?:href|src)="([^"#]+)"', text)) == {"choosing-a-client.html", "atlas.html"}
    assert re.search(r"Measured on \d{4}-\d\d-\d\d on .+ in \d+ rounds", text)
    assert "chooser.html" in (ROOT / "docs" / "choosing-a-client.md").read_text(encoding="utf-8")
