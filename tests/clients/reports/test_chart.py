"""The chart: what is drawn, and where it can be written."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from clientlab.errors import LabError
from clientlab.reports import chart
from clientlab.reports.rows import groups_of
from clientlab.runs.document import Arm
from clientlab.workload import Workload
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


def an_arm(name: str, workload: str = "workload", route: str = "direct", **axes) -> Arm:
    """An arm on its way."""
    return Arm(name=name, label=name, strategy="urllib3", upstream="aiohttp", route=route, workload=workload, axes=axes)


def trials_of(*arms: Arm, wall: float = 1.0) -> list:
    """Three rounds of each; the second arm takes twice as long as the first, and so on."""
    return [
        a_trial("urllib3", number, wall * place, arm=arm.name, workload=arm.workload, route=arm.route)
        for place, arm in enumerate(arms, start=1)
        for number in (1, 2, 3)
    ]


def test_arms_of_their_own_names_stand_in_one_panel_the_fastest_first():
    """Though their ways differ: they are there to be compared."""
    arms = [an_arm("plain"), an_arm("proxied", route="proxy")]
    (panel,) = panels(a_run(*reversed(trials_of(*arms)), arms=arms))
    assert names(panel) == ["plain  (c=1)", "proxied  (c=1)"]
    assert panel.get_title(loc="left") == "workload"


def test_each_workload_has_a_scale_of_its_own():
    """In seconds for its own number of requests."""
    arms = [an_arm("few", "few"), an_arm("many", "many")]
    workloads = {"few": Workload(requests=10), "many": Workload(requests=1000)}
    few, many = panels(a_run(*trials_of(*arms, wall=5.0), arms=arms, workloads=workloads))
    assert few.get_xlim() != many.get_xlim()
    assert few.get_xlabel() == "seconds for 10 requests"
    assert many.get_xlabel().startswith("seconds for 1,000 requests: the bar is the median")


@pytest.mark.parametrize(
    ("places", "scale"), [((1, 10, 100), "log"), ((2, 4, 6), "linear"), (("a", "b", "c"), "linear")]
)
def test_a_sweep_is_a_curve_with_its_knee_and_no_bars(places, scale):
    """A dot for each round; an axis that goes far is logarithmic, one of words has even distances."""
    arms = [an_arm(f"c={place}", c=place) for place in places]
    (panel,) = panels(a_run(*trials_of(*arms), arms=arms, workloads={"workload": Workload(requests=1000)}))
    assert list(panel.patches) == []
    line, *dots, ring = panel.lines
    assert [len(dot.get_xdata()) for dot in dots] == [3, 3, 3]
    assert list(line.get_ydata()) == pytest.approx([1.0, 2.0, 3.0])
    assert ring.get_xdata() == line.get_xdata()[0]
    assert panel.get_legend().get_texts()[0].get_text() == f"urllib3: knee at {places[0]}"
    assert panel.get_xscale() == scale
    assert [tick.get_text() for tick in panel.get_xticklabels()] == [str(place) for place in places]


def test_a_sweep_beside_other_arms_has_bars_as_well():
    """They are there to be compared with them."""
    arms = [an_arm(f"c={place}", c=place) for place in (1, 2, 4)] + [an_arm("other")]
    bars, curve = panels(a_run(*trials_of(*arms), arms=arms))
    assert len(bars.patches) == 4
    assert curve.lines


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
