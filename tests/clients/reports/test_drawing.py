"""Charts as SVG elements: no label covers another one, on a wide page and
on a phone.
"""

from __future__ import annotations

import itertools
import re

import pytest

from clientlab import units
from clientlab.reports import drawing
from clientlab.reports.sections import ChartRow, RowChart

TEXT = re.compile(
    r'<text style="font-size: ([\d.]+)px.*?anchor: (\w+).*?" x="([\d.]+)"'
    r' y="([\d.]+)".*?>(.*?)</text>'
)
LETTER = 0.61  # pixels of a letter, by its size
ANCHORS = {"start": 0.0, "middle": 0.5, "end": 1.0}
"""Share of a text's width on the left of its x."""


def extents(svg: str) -> list[tuple[float, float, float, str]]:
    """Return baseline, left and right end of each text, in pixels, and the text."""
    found = []
    for size, anchor, x, y, text in TEXT.findall(svg):
        width = float(size) * LETTER * len(text)
        left = float(x) - ANCHORS[anchor] * width
        found.append((float(y), left, left + width, text))
    return found


def overlapping(chart: RowChart, *, narrow: bool) -> list[tuple[str, str]]:
    """Return the pairs of texts on one line of which one covers the other."""
    texts = extents(drawing.svg(chart, narrow=narrow))
    assert len(texts) > 2
    pairs = []
    for first, second in itertools.combinations(sorted(texts), 2):
        y, left, right, text = first
        other_y, other_left, other_right, other = second
        is_on_one_line = abs(y - other_y) < 8
        if is_on_one_line and left < other_right and other_left < right:
            pairs.append((text, other))
    return pairs


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("low", [0.011, 0.024, 0.04])
def test_no_label_of_a_logarithmic_axis_covers_the_next(low, narrow):
    rows = [ChartRow("urllib3", "1", "#0072b2", dots=[0.06])]
    for high in (0.11, 0.35, 0.8, 1.9, 4.4, 30.0):
        chart = RowChart("", rows, [], low, high, units.time, log=True)
        assert overlapping(chart, narrow=narrow) == []


@pytest.mark.parametrize("length", [24, 27, 30, 33, 36])
def test_no_name_covers_the_text_of_its_row(length):
    text = "0.501 (0.480 to 0.522)"[: 45 - length]
    row = ChartRow("n" * length, text, "#0072b2", dots=[1.0])
    chart = RowChart("", [row], [], 0.0, 2.0, units.time)
    assert overlapping(chart, narrow=True) == []
