"""The report as one HTML file: what stands where, that nothing is fetched, and that words stay words."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from clientlab.reports import as_html
from clients.documents import a_run
from clients.html_page import Page
from clients.report_runs import a_hostile_run, a_measured_trial, a_whole_run

SECTIONS = [
    "answer", "claims", "table", "compared", "times", "sweep", "latency", "resources",
    "errors", "surroundings", "again",
]  # fmt: skip


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(as_html.render(a_whole_run()))


def test_every_section_is_there_and_the_list_of_sections_leads_to_it(page):
    """In the order of the page; each is named by its heading. Marks of charts refer to shapes that exist."""
    assert [section["id"] for section in page.all("section")] == SECTIONS
    ids = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert set(ids.values()) == {1}
    references = [value for _, attributes in page.elements for value in attributes.values() if value and "#" in value]
    assert {re.sub(r"url\(#(\w+)\)|#", r"\1", reference) for reference in references} <= set(ids)
    assert [value[1:] for value in references if value[1:] in SECTIONS] == SECTIONS
    assert all(section["aria-labelledby"] in ids for section in page.all("section"))


def test_nothing_is_fetched_and_nothing_is_run(page):
    """No script, no picture, no frame, no sheet; addresses are places of the page, or the source's."""
    names = {name for name, _ in page.elements}
    assert not names & {"script", "img", "iframe", "link", "object", "embed", "form", "base"}
    policy = next(m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    outside = [link["href"] for link in page.all("a") if not link["href"].startswith("#")]
    assert outside == ["https://example.org/fast"]
    assert not [word for word in page.text("style")[0].split() if "url(" in word or "@import" in word]


def test_words_stay_words_wherever_they_come_from():
    words = '</title></style><script>alert(1)</script>"><img src=x onerror=alert(1)>{{ 7 * 7 }}{% raw %}'
    plain, page = (Page(as_html.render(a_hostile_run(text))) for text in (re.sub(r"[^\w ]", "x", words), words))
    assert [name for name, _ in page.elements] == [name for name, _ in plain.elements]
    assert [sorted(attributes) for _, attributes in page.elements] == [sorted(a) for _, a in plain.elements]
    assert [link["href"] for link in page.all("a") if not link["href"].startswith("#")] == []
    text = " ".join(words.split())
    for section in ("answer", "times", "table", "claims", "sweep", "errors", "surroundings", "again"):
        assert text in page.section(section), section


def test_the_page_of_a_large_run_stays_below_two_megabytes():
    """Charts are folded or left out; the tables are all there."""
    places = [*((arm, 0) for arm in range(30)), *((arm, route) for arm in range(2) for route in range(1, 13))]
    trials = [a_measured_trial(f"s{arm}", wall=1 + arm % 7 / 10, route=f"r{route}") for arm, route in places]
    text = as_html.render(a_run(*trials))
    assert len(text.encode()) < 2_000_000
    assert len(Page(text).all("table")) >= 13
