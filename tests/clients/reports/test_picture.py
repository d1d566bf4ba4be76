"""The picture file: what is drawn, and where it can be written."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from clientlab.errors import LabError
from clientlab.reports.charts import drawing
from clients.documents import a_failed_trial, a_run, a_trial

RUN = a_run(
    *(a_trial("urllib3", number, wall) for number, wall in enumerate((1.0, 1.1, 0.9), start=1)),
    *(a_trial("pycurl", number, wall, errors={"reset": 2}) for number, wall in enumerate((3.0, 3.3, 2.7), start=1)),
    *(a_trial("urllib3", number, 2.0, route="proxy") for number in (1, 2, 3)),
)


def test_an_svg_holds_the_texts_and_is_the_same_each_time(tmp_path):
    """Names and values; no date and no random numbers, so that a chart can be committed."""
    for name in ("x.svg", "y.svg"):
        drawing.write(RUN, tmp_path / name)
    text = (tmp_path / "x.svg").read_text(encoding="utf-8")
    ET.fromstring(text)  # noqa: S314 - written here
    for part in ("urllib3", "pycurl", "Which is fastest?", "1.00 s", "time for 1,000 requests"):
        assert part in text
    assert (tmp_path / "y.svg").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("question", ["$x_1$ & <b>?", "50% \\frac{1}{2} of $10\ntwo lines, どちら 🚀?"])
def test_a_question_with_markup_is_drawn_as_valid_xml(question, tmp_path):
    """Mathematics, markup and characters that the font lacks cause no error and no warning."""
    path = tmp_path / "x.svg"
    drawing.write(a_run(a_trial(), question=question), path)
    ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 - written here


def test_a_chart_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(LabError, match="none"):
        drawing.write(RUN, tmp_path / "none" / "x.svg")
    with pytest.raises(LabError, match=r"run .* has no finished trial to draw"):
        drawing.write(a_run(a_failed_trial("pycurl")), tmp_path / "x.png")
