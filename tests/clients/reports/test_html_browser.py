"""The report in a real browser: Debian's Chromium, driven by Playwright, which downloads none of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Page

from browser import headless_chromium
from clientlab.reports import as_html
from clients.report_runs import a_hostile_run, a_whole_run

pytestmark = pytest.mark.slow

SECTIONS = [
    "answer", "times", "table", "claims", "sweep", "latency", "distribution", "overhead", "timeline", "resources",
    "errors", "surroundings", "again",
]  # fmt: skip
SCREENS = {"wide, light": (1280, "light"), "wide, dark": (1280, "dark"), "telephone": (360, "light")}

# Of every element with words of its own: contrast with the ground that it stands on (WCAG 2.2, 1.4.3).
LOW_CONTRAST = """
() => {
  const part = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const found = numbers(getComputedStyle(element).backgroundColor);
      if (found.length < 4 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const own = (element) => [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  return [...document.body.querySelectorAll("*")].filter((e) => !e.closest("svg") && own(e)).flatMap((element) => {
    const pair = [light(numbers(getComputedStyle(element).color)), light(ground(element))].sort((a, b) => b - a);
    const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
    return contrast < 4.5 ? [`${element.tagName}.${element.className}: ${contrast.toFixed(2)}`] : [];
  });
}
"""
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
    for name in SECTIONS:
        section = shown.page.locator(f"section#{name}")
        assert section.is_visible(), name
        assert section.get_by_role("heading").first.is_visible(), name
    for folded in (True, False):
        if not folded:
            shown.page.evaluate(OPEN_ALL)
        assert shown.page.evaluate(TOO_WIDE) <= 0
    assert (shown.page.evaluate(GROUND) == WHITE) == (scheme == "light")
    assert (shown.said, len(shown.asked)) == ([], 1)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_words_have_enough_contrast(scheme, opened):
    """4.5 to 1 at least, in both colours."""
    assert opened(a_whole_run(), scheme=scheme).page.evaluate(LOW_CONTRAST) == []


def test_the_colours_can_be_chosen_by_keyboard(opened):
    """Without a script: whatever the system's are."""
    page = opened(a_whole_run(), scheme="dark").page
    assert page.evaluate(GROUND) != WHITE
    page.locator("#theme-auto").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#theme-light").is_checked()
    assert page.evaluate(GROUND) == WHITE
    page.get_by_text("dark", exact=True).click()
    assert page.evaluate(GROUND) != WHITE


def test_pictures_fit_their_place_and_have_words(opened):
    """Each drawing has a size and a name; no tick lies on another."""
    page = opened(a_whole_run(), 360).page
    page.evaluate(OPEN_ALL)
    drawings = page.get_by_role("img").all()
    assert len(drawings) > 50
    assert all(drawing.bounding_box()["width"] > 100 for drawing in drawings)
    overlapping = page.evaluate(
        """() => [...document.querySelectorAll(".xs")].flatMap((axis) => {
             const boxes = [...axis.children].map((tick) => tick.getBoundingClientRect());
             boxes.sort((a, b) => a.left - b.left);
             return boxes.some((box, n) => n && box.left < boxes[n - 1].right) ? [axis.innerText] : [];
           })"""
    )
    assert overlapping == []


def test_tables_scroll_inside_their_own_box(opened):
    """By keyboard as well, for each can have the focus."""
    page = opened(a_whole_run(), 360).page
    box = page.locator("section#table .scroll").first
    assert box.evaluate("(e) => e.scrollWidth > e.clientWidth && e.tabIndex === 0")
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('section#table .scroll').scrollLeft > 0")


@pytest.mark.parametrize(
    "words", ["</title></style><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "x" * 3000]
)
def test_hostile_words_do_nothing(words, opened):
    """No script runs, nothing is asked for, and the page is no wider."""
    shown = opened(a_hostile_run(words), 360)
    shown.page.evaluate(OPEN_ALL)
    assert shown.page.locator("script, img").count() == 0
    assert shown.page.locator("h1").inner_text() == words
    assert shown.page.evaluate(TOO_WIDE) <= 0
    assert (shown.said, len(shown.asked)) == ([], 1)
