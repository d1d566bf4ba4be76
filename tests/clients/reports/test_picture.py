"""The picture file: what is drawn, and where it can be written."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from clientlab.errors import LabError
from clientlab.reports.charts import bars, picture, sweeps
from clientlab.reports.rows import groups_of
from clientlab.results.plan import Arm
from clients.documents import a_failed_trial, a_run, a_trial
from clients.report_runs import a_hostile_run

RUN = a_run(
    *(a_trial("urllib3", number, wall) for number, wall in enumerate((1.0, 1.1, 0.9), start=1)),
    *(a_trial("pycurl", number, wall, errors={"reset": 2}) for number, wall in enumerate((3.0, 3.3, 2.7), start=1)),
    *(a_trial("urllib3", number, 2.0, route="proxy") for number in (1, 2, 3)),
)
ARMS = [
    Arm(
        name=f"c={place}", label=f"c={place}", strategy="urllib3", upstream="aiohttp", route="direct",
        workload="workload", axes={"c": place},
    )
    for place in (1, 10, 100)
]  # fmt: skip
SWEEP = a_run(
    *(a_trial("urllib3", n, place, arm=arm.name) for place, arm in enumerate(ARMS, start=1) for n in (1, 2, 3)),
    arms=ARMS,
)


def panels(run):
    """The panels of a run's picture."""
    return picture.drawing("Title", [*bars.times(run, groups_of(run)), *sweeps.charts(run)]).axes


def texts(panel) -> list[str]:
    """The texts beside the bars: name and value, by row."""
    return [text.get_text() for text in panel.texts]


def test_a_png_is_a_picture(tmp_path):
    """A chart with the suffix .png is a PNG file that holds a picture."""
    picture.write(RUN, tmp_path / "x.png")
    content = (tmp_path / "x.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n")
    assert len(content) > 10_000


def test_an_svg_holds_the_texts_and_is_the_same_each_time(tmp_path):
    """Names and values; no date and no random numbers, so that a chart can be committed."""
    for name in ("x.svg", "y.svg"):
        picture.write(RUN, tmp_path / name)
    text = (tmp_path / "x.svg").read_text(encoding="utf-8")
    ET.fromstring(text)  # noqa: S314 - written here
    for part in ("urllib3", "pycurl", "Which is fastest?", "1.00 s", "time for 1,000 requests"):
        assert part in text
    assert (tmp_path / "y.svg").read_text(encoding="utf-8") == text


def test_bars_are_drawn_with_their_dots_intervals_and_texts():
    """As the chart's data has them, the fastest in bold."""
    direct, _ = charts = bars.times(RUN, groups_of(RUN))
    panel, other = panels(RUN)
    assert [bar.get_width() for bar in panel.patches] == pytest.approx([row.length for row in direct.rows])
    assert texts(panel) == ["urllib3", "1.00 s", "pycurl", "3.01 s ⚠ errors"]
    assert [text.get_fontweight() for text in panel.texts] == ["bold", "bold", "normal", "normal"]
    assert [len(line.get_xdata()) for line in panel.lines] == [2, 3, 2, 3]
    assert [one.get_title(loc="left") for one in (panel, other)] == [chart.title for chart in charts]
    assert [tick.get_text() for tick in panel.get_xticklabels()] == [tick.text for tick in direct.ticks]


def test_notes_stand_below_and_what_a_bar_is_is_explained_once():
    """Below the last chart of bars."""
    first, last = (panel.get_xlabel() for panel in panels(RUN))
    assert first.splitlines() == [
        "time for 1,000 requests, c=1; shorter is better",
        "Requests failed with pycurl: look at the errors before the speed.",
    ]
    assert "The bar is the typical time" in last


def test_a_sweep_is_drawn_as_a_curve_with_its_knee_and_a_band():
    """A dot for each round; the ticks are the values of the axis."""
    (panel,) = panels(SWEEP)
    assert list(panel.patches) == []
    line, dots, ring = panel.lines
    assert [len(drawn.get_xdata()) for drawn in (line, dots, ring)] == [3, 9, 1]
    assert ring.get_xdata()[0] == line.get_xdata()[0]
    assert len(panel.collections) == 1
    assert panel.get_legend().get_texts()[0].get_text() == "urllib3: knee at 1"
    assert {tick.get_text() for tick in panel.get_xticklabels()} == {"1", "10", "100"}


@pytest.mark.parametrize(
    "question", ["$x_1$ & <b>?", "50% \\frac{1}{2} of $10", "a" * 300, "Größe — naïve?", "two\nlines?", ""]
)
@pytest.mark.parametrize("ending", [".svg", ".png"])
def test_a_question_is_drawn_as_it_is(question, ending, tmp_path):
    """Neither mathematics nor markup is seen in it."""
    run = a_run(a_trial(), question=question)
    path = tmp_path / f"x{ending}"
    picture.write(run, path)
    if ending == ".svg":
        ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 - written here
    assert path.stat().st_size > 5000


@pytest.mark.parametrize("letters", [60, 3000])
def test_long_names_leave_room_for_the_chart(letters, tmp_path):
    """Names, titles and notes are cut. matplotlib warns of a chart without room, and a warning is an error here."""
    picture.write(a_hostile_run("x" * letters), tmp_path / "x.png")


def test_letters_that_the_font_lacks_make_no_noise(tmp_path):
    """A box stands for each; nothing is said about it on the terminal (warnings are errors here)."""
    picture.write(a_run(a_trial(), question="どちら 🚀?"), tmp_path / "x.png")


@pytest.mark.parametrize("name", ["x.jpg", "x", "x.PNG.txt", ".png"])
def test_another_ending_is_refused(name, tmp_path):
    """With those that there are; nothing is written."""
    with pytest.raises(LabError, match=r"the name must end with .png or .svg"):
        picture.write(RUN, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    """A folder that is not there, and a folder in its place."""
    (tmp_path / "taken.svg").mkdir()
    with pytest.raises(LabError, match=r"there is no folder .*none; make it or name another with --chart"):
        picture.write(RUN, tmp_path / "none" / "x.svg")
    with pytest.raises(LabError, match=r"taken.svg: Is a directory; name another place with --chart"):
        picture.write(RUN, tmp_path / "taken.svg")


def test_a_run_without_a_finished_trial_has_no_chart(tmp_path):
    """A chart is refused if no trial has finished."""
    with pytest.raises(LabError, match=r"run .* has no finished trial to draw"):
        picture.write(a_run(a_failed_trial("pycurl")), tmp_path / "x.png")
