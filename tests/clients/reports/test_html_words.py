"""Words in the report that are not the lab's own: nothing but words is made of them."""

from __future__ import annotations

import pytest

from clientlab.reports import as_html
from clients.html_page import Page
from clients.report_runs import a_hostile_run

HOSTILE = [
    "</title></style><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}{% raw %}",
]  # fmt: skip


@pytest.fixture(scope="module")
def plain() -> Page:
    """The page of the same run with harmless words."""
    return Page(as_html.render(a_hostile_run("plain")))


@pytest.mark.parametrize("words", HOSTILE)
def test_words_stay_words_wherever_they_come_from(words, plain):
    """Names, errors, headers, questions, claims: no element and no attribute is made of them."""
    page = Page(as_html.render(a_hostile_run(words)))
    assert [name for name, _ in page.elements] == [name for name, _ in plain.elements]
    assert [sorted(attributes) for _, attributes in page.elements] == [sorted(a) for _, a in plain.elements]
    assert [link["href"] for link in page.all("a") if not link["href"].startswith("#")] == []
    text = " ".join(words.split())
    for section in ("answer", "times", "table", "claims", "sweep", "errors", "surroundings", "again"):
        assert text in page.section(section), section
