"""The chart: what is drawn, and where it can be written."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from clientlab.errors import LabError
from clientlab.reports import chart
from clientlab.reports.rows import groups_of
from clients.documents import a_failed_trial, a_run, a_trial

RUN = a_run(
    *(a_trial("urllib3", number, wall) for number, wall in enumerate((1.0, 1.1, 0.9), start=1)),
    *(a_trial("pycurl", number, wall, errors={"reset": 2}) for number, wall in enumerate((3.0, 3.3, 2.7), start=1)),
    *(a_trial("urllib3", number, 2.0, route="proxy") for number in (1, 2, 3)),
)


def panels(run):
    """The panels of a run's chart."""
    return chart.figure(run, groups_of(run)).axes


def words(panel) -> list[str]:
    """The words beside the bars."""
    return [text.get_text() for text in panel.texts]


def names(panel) -> list[str]:
    """The words below the bars."""
    return [label.get_text() for label in panel.get_yticklabels()]


def test_a_png_is_a_picture(tmp_path):
    """Of some size."""
    chart.write(RUN, tmp_path / "x.png")
    content = (tmp_path / "x.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n")
    assert len(content) > 10_000


def test_an_svg_holds_the_words_and_is_the_same_each_time(tmp_path):
    """Names and values; no date and no random numbers, so that a chart can be committed."""
    for name in ("x.svg", "y.svg"):
        chart.write(RUN, tmp_path / name)
    text = (tmp_path / "x.svg").read_text(encoding="utf-8")
    ET.fromstring(text)  # noqa: S314 - written here
    for word in ("urllib3", "pycurl", "Which is fastest?", "1.00 s", "seconds for 1,000 requests"):
        assert word in text
    assert (tmp_path / "y.svg").read_text(encoding="utf-8") == text


def test_the_bar_is_the_median_and_the_value_is_told():
    """In seconds for as many requests as each trial made; every round is a dot."""
    direct, proxied = panels(RUN)
    assert [bar.get_width() for bar in direct.patches] == pytest.approx([1.0, 3.0 / 998 * 1000])
    assert [bar.get_width() for bar in proxied.patches] == pytest.approx([2.0])
    assert words(direct) == ["1.00 s", "3.01 s  with errors"]
    assert names(direct) == ["urllib3  (c=1)", "pycurl  (c=1)"]
    assert [len(line.get_xdata()) for line in direct.lines] == [3, 3]
    assert direct.get_title(loc="left") == "workload · aiohttp upstream · direct"


def test_all_panels_have_one_scale():
    """So that direct and proxied can be compared by eye."""
    assert len({panel.get_xlim() for panel in panels(RUN)}) == 1
    longest = max(bar.get_width() for panel in panels(RUN) for bar in panel.patches)
    assert panels(RUN)[0].get_xlim()[1] > longest


def test_the_fastest_has_a_colour_of_its_own():
    """One bar in each panel."""
    colours = [bar.get_facecolor() for bar in panels(RUN)[0].patches]
    assert len(set(colours)) == 2


@pytest.mark.parametrize(
    "question", ["$x_1$ & <b>?", "50% \\frac{1}{2} of $10", "a" * 300, "Größe — naïve?", "two\nlines?", ""]
)
@pytest.mark.parametrize("ending", [".svg", ".png"])
def test_a_question_is_drawn_as_it_is(question, ending, tmp_path):
    """Neither mathematics nor markup is seen in it."""
    run = a_run(a_trial(), question=question)
    path = tmp_path / f"x{ending}"
    chart.write(run, path)
    if ending == ".svg":
        ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 - written here
    assert path.stat().st_size > 5000


def test_letters_that_the_font_lacks_make_no_noise(tmp_path):
    """A box stands for each; nothing is said about it on the terminal (warnings are errors here)."""
    chart.write(a_run(a_trial(), question="どちら 🚀?"), tmp_path / "x.png")


@pytest.mark.parametrize("name", ["x.jpg", "x", "x.PNG.txt", ".png"])
def test_another_ending_is_refused(name, tmp_path):
    """With those that there are; nothing is written."""
    with pytest.raises(LabError, match=r"the ending is to be one of .png, .svg"):
        chart.write(RUN, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    """A folder that is not there, and a folder in its place."""
    (tmp_path / "taken.svg").mkdir()
    with pytest.raises(LabError, match=r"there is no folder .*none; make it or name another with --chart"):
        chart.write(RUN, tmp_path / "none" / "x.svg")
    with pytest.raises(LabError, match=r"taken.svg: Is a directory; name another place with --chart"):
        chart.write(RUN, tmp_path / "taken.svg")


def test_a_run_without_a_finished_trial_has_no_chart(tmp_path):
    """There is nothing to draw."""
    with pytest.raises(LabError, match=r"run .* has no finished trial to draw"):
        chart.write(a_run(a_failed_trial("pycurl")), tmp_path / "x.png")
