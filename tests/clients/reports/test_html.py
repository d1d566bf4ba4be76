"""The report as one HTML file: what stands where, that nothing is fetched, and that words stay words."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest

from clientlab.errors import LabError
from clientlab.reports import as_html
from clientlab.results.document import Caution
from clients.documents import a_failed_trial, a_run, a_trial
from clients.html_page import Page
from clients.report_runs import a_measured_trial, a_whole_run

SECTIONS = [
    "answer", "table", "compared", "times", "claims", "sweep", "latency", "distribution", "overhead", "timeline",
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


def test_the_page_is_found_by_its_landmarks_and_headings(page):
    """One main part, one first heading, and no level of headings is left out."""
    for landmark in ("main", "header", "nav", "h1"):
        assert len(page.all(landmark)) == 1
    levels = [int(name[1]) for name, _ in page.elements if name in {"h1", "h2", "h3", "h4"}]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert page.all("html") == [{"lang": "en"}]


def test_nothing_is_fetched_and_nothing_is_run(page):
    """No script, no picture, no frame, no sheet; addresses are places of the page, or the source's."""
    names = {name for name, _ in page.elements}
    assert not names & {"script", "img", "iframe", "link", "object", "embed", "form", "base"}
    policy = next(m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    outside = [link["href"] for link in page.all("a") if not link["href"].startswith("#")]
    assert outside == ["https://example.org/fast"]
    assert not [word for word in page.text("style")[0].split() if "url(" in word or "@import" in word]


def test_cautions_stand_above_the_numbers(page):
    """In a line that unfolds, with their advice, behind the answer and before the first figure."""
    text = page.section("answer")
    caution, answer = text.index("something else was running end it"), text.index("urllib3 made")
    assert answer < text.index("Cautions: ") < caution
    assert caution < text.index("requests: 4,000 became 400")
    assert text.startswith("Which is fastest?")


def test_bars_tell_time_interval_and_rounds(page):
    """On each bar its value; what a pointer or a screen reader is told has the interval and all rounds."""
    titles = page.text("title")
    assert (
        "urllib3: 1.20 s over 3 rounds (1.10 s, 1.20 s, 1.30 s); "
        "95 % confidence interval 973 ms to 1.47 s"
    ) in titles  # fmt: skip
    assert "4.20 s ⚠ errors" in page.section("times")
    assert "Requests failed with requests" in page.section("times")


def test_routes_that_are_far_apart_have_a_scale_each():
    """Otherwise bars of all ways have one, so that they can be compared by eye."""
    slow = [a_trial("pycurl", number, 60.0, route="proxy") for number in (1, 2, 3)]
    near = [a_trial("pycurl", number, 3.0, route="proxy") for number in (1, 2, 3)]
    fast = [a_trial("pycurl", number, 1.0) for number in (1, 2, 3)]
    own = "This chart has its own scale."
    assert Page(as_html.render(a_run(*fast, *slow))).section("times").count(own) == 2
    assert own not in Page(as_html.render(a_run(*fast, *near))).section("times")


def test_the_table_has_the_terminals_figures(page):
    """The HTML table has the headings and the cells of the terminal's table."""
    text = page.section("table")
    assert "strategy c wall req/s x fastest (95 %) p50 p99" in text
    assert "requests 1 4.20 s 95.2" in text


def test_claims_stand_beside_what_the_source_printed(page):
    """With verdict, ratio, interval, rounds, and what would settle an open one; controls come last."""
    text = page.section("claims")
    first = "✓ supported urllib3 is faster published 2 s against 4 s measured 1.2 s against 2.2 s"
    assert f"{first} ratio (95 %) 2.00 (1.80 to 2.20), 3 rounds" in text
    assert "? inconclusive · the lab's control they are alike" in text
    assert "to settle it 12 rounds" in text
    assert "Fast requests , A. Uthor, 2021" in text
    assert "connections of each process" in text


def test_a_sweep_shows_its_knee(page):
    """The first place within 5 % of the least, in the legend and for those who can't see the picture."""
    assert "aiohttp@semaphore: knee at 8" in page.section("sweep")
    told = [svg["aria-label"] for svg in page.all("svg") if "aria-label" in svg]
    assert "aiohttp@semaphore: least typical time 2.00 s at 8, knee at 8." in told


def test_every_picture_has_words(page):
    """A label or a title for each drawing that is not beside its own words."""
    drawings = [svg for svg in page.all("svg") if svg.get("aria-hidden") != "true"]
    assert len(drawings) > 50
    assert all(svg["role"] == "img" for svg in drawings)
    titles = [place for place, (name, _) in enumerate(page.elements) if name == "title"]
    named = [place for place, (name, attrs) in enumerate(page.elements) if name == "svg" and "aria-label" not in attrs]
    assert all(place + 1 in titles for place in named if page.elements[place][1].get("aria-hidden") != "true")


def test_errors_and_failures_are_told_with_an_example(page):
    """By arm and kind; a failed trial with its reason."""
    text = page.section("errors")
    assert "requests (workload, aiohttp, proxy) reset 3 0.250 % Connection reset by peer" in text
    assert "it could not be started" in text


def test_the_run_can_be_done_again_to_the_letter(page):
    """The command as it was, and where it ran."""
    assert a_whole_run().experiment.command in page.text("pre")
    assert "delay 5ms" in page.section("again")
    assert "header X-A b" in page.section("again")
    assert "A CPU; 4 cores, 4 usable" in page.section("surroundings")


def test_what_there_is_nothing_of_is_left_out():
    """No claims, no sweep, no delay; and errors are said to be none."""
    page = Page(as_html.render(a_run(a_trial())))
    assert [section["id"] for section in page.all("section")] == [
        "answer", "table", "times", "resources", "errors", "surroundings", "again",
    ]  # fmt: skip
    assert "No request failed. No trial failed." in page.section("errors")


@pytest.mark.parametrize("run", [a_run(), a_run(a_failed_trial("pycurl"))], ids=["new", "failed"])
def test_a_run_without_a_figure_has_a_report_too(run):
    """It says that nothing was measured."""
    page = Page(as_html.render(run))
    assert "No trial finished." in page.section("answer")
    assert page.all("figure") == []


def test_a_strategy_has_one_look_in_every_picture(page):
    """Its colour does not change with its place."""
    looks: dict[str, set] = {}
    title = {place: words for place, (name, _) in enumerate(page.elements) if name == "title" for words in [place]}
    texts = dict(zip(title, page.text("title"), strict=True))
    for place, (name, attributes) in enumerate(page.elements):
        if name in {"svg", "g"} and place + 1 in texts and " c" in f" {attributes.get('class', '')}":
            colour = next(word for word in attributes["class"].split() if word[0] == "c" and word[1:].isdigit())
            looks.setdefault(texts[place + 1].split(":")[0].split(",")[0], set()).add(colour)
    assert {name: len(colours) for name, colours in looks.items() if name in {"urllib3", "pycurl", "requests"}} == {
        "urllib3": 1, "pycurl": 1, "requests": 1,
    }  # fmt: skip


@pytest.mark.parametrize(("arms", "rounds", "routes"), [(60, 1, 1), (20, 10, 1), (2, 2, 45)])
def test_a_large_run_is_folded_and_stays_below_two_megabytes(arms, rounds, routes):
    """What is not drawn or stands back is said."""
    alike = [a_measured_trial(number=number) for number in range(1, rounds + 1)]
    trials = [
        trial.model_copy(update={"strategy": f"s{arm}", "wall_seconds": 1 + arm / 10, "route": f"r{route}"})
        for arm in range(arms) for trial in alike for route in range(routes)
    ]  # fmt: skip
    text = as_html.render(a_run(*trials))
    page = Page(text)
    assert len(text.encode()) < 2_000_000
    said = " ".join(page.text("summary", "p", "figcaption"))
    if arms > 8:
        assert f"{arms - 8} others are grey" in said
        assert ("40 slower arms" in said) == (arms == 60)
    else:
        assert "The charts show the first 40 of 45 groups. The tables show all." in said
        assert "36 more charts" in said
        assert "41 more groups" in said
    assert len(page.all("table")) >= routes


def test_a_page_goes_where_it_can_be_written(tmp_path):
    """Another ending, a missing folder and a folder in its place are refused."""
    as_html.write(a_whole_run(), tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == as_html.render(a_whole_run())
    (tmp_path / "taken.html").mkdir()
    for name, says in (
        ("x.pdf", r"report .*x.pdf: the name must end with .html or .htm"),
        ("none/x.html", r"there is no folder .*none; make it or name another with --html"),
        ("taken.html", r"taken.html: Is a directory; name another place with --html"),
    ):
        with pytest.raises(LabError, match=says):
            as_html.write(a_whole_run(), tmp_path / name)


def test_latencies_that_hold_a_wait_for_a_connection_are_marked_in_charts():
    """In the lines, the areas and the tables below them, with a note; the other arm is not marked."""
    waiting = a_measured_trial("pycurl", waits_for_connection=True)
    page = Page(as_html.render(a_run(a_measured_trial(), waiting)))
    for section in ("latency", "distribution"):
        text = page.section(section)
        assert "* holds the wait for a free connection." in text
    assert "pycurl*" in page.section("latency")
    assert "urllib3*" not in page.section("latency")
    assert re.search(r"ms\* · [\d.]+ ms\*", page.section("distribution"))
    assert "free connection." not in Page(as_html.render(a_run(a_measured_trial()))).section("latency")


def test_doubts_are_shown_one_below_the_other():
    """Those of one kind in one box."""
    doubts = [Caution(kind="x", text=f"doubt {n}", advice="mend it") for n in range(3)]
    page = Page(as_html.render(a_whole_run().model_copy(update={"cautions": doubts, "status": "incomplete"})))
    assert [one for one in page.text("li") if "doubt" in one] == ["X doubt 0 mend it doubt 1 mend it doubt 2 mend it"]
    assert "This run is incomplete. The report shows the trials that finished." in page.section("answer")
