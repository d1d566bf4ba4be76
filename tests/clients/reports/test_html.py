"""The report as one HTML file: what stands where, that nothing is fetched, and that words stay words."""

from __future__ import annotations

from collections import Counter

import pytest

from clientlab.reports import as_html
from clients.documents import a_run
from clients.html_page import Page
from clients.report_runs import a_hostile_run, a_measured_trial, a_whole_run

SECTIONS = [
    "answer", "table", "compared", "times", "claims", "sweep", "latency", "distribution",
    "resources", "errors", "surroundings", "again",
]  # fmt: skip


@pytest.fixture(scope="module")
def page() -> Page:
    """The page of a run that has everything."""
    return Page(as_html.render(a_whole_run()))


def test_every_section_is_there_and_the_list_of_sections_leads_to_it(page):
    """In the order of the page; each is named by its heading."""
    assert [section["id"] for section in page.all("section")] == SECTIONS
    assert [link["href"] for link in page.all("a") if link["href"] != "#main"][: len(SECTIONS)] == [
        f"#{name}" for name in SECTIONS
    ]
    ids = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert set(ids.values()) == {1}
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


@pytest.mark.parametrize(
    "words",
    ["</title></style><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}{% raw %}"],
)
def test_words_stay_words_wherever_they_come_from(words):
    """Names, errors, headers, questions, claims: no element and no attribute is made of them."""
    plain, page = (Page(as_html.render(a_hostile_run(text))) for text in ("plain", words))
    assert [name for name, _ in page.elements] == [name for name, _ in plain.elements]
    assert [sorted(attributes) for _, attributes in page.elements] == [sorted(a) for _, a in plain.elements]
    assert [link["href"] for link in page.all("a") if not link["href"].startswith("#")] == []
    text = " ".join(words.split())
    for section in ("answer", "times", "table", "claims", "sweep", "errors", "surroundings", "again"):
        assert text in page.section(section), section


@pytest.mark.parametrize(("arms", "routes"), [(60, 1), (2, 45)])
def test_the_page_of_a_large_run_stays_below_two_megabytes(arms, routes):
    """Charts are folded or left out; the tables are all there."""
    trials = [
        a_measured_trial().model_copy(
            update={"strategy": f"s{arm}", "wall_seconds": 1 + arm / 10, "route": f"r{route}"}
        )
        for arm in range(arms)
        for route in range(routes)
    ]
    text = as_html.render(a_run(*trials))
    assert len(text.encode()) < 2_000_000
    assert len(Page(text).all("table")) >= routes
