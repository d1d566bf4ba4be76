"""The colours of charts and pages.

They are Okabe and Ito's palette for colour-blind readers (jfly.uni-koeln.de/color),
with violet for yellow and grey for black. Every colour has a contrast of at least 3
with its page.
"""

from __future__ import annotations

from clientlab.results.document import Run

HUES = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#b8628f",
    "#b97f00",
    "#2f93cf",
    "#5b3df0",
    "#6b7280",
)
"""On a light page."""

DARK_HUES = (
    "#3f9fe0",
    "#f07a3c",
    "#16b98c",
    "#dd97bf",
    "#e69f00",
    "#8fd0f5",
    "#8f7bff",
    "#9aa3ae",
)
"""On a dark page."""

GREY = HUES[-1]


def colours_of(run: Run) -> dict[str, str]:
    """Map arms to colours.

    Arms differ in colour if their strategies differ by more than settings, or if their
    environments or servers differ.
    """
    hues: dict[tuple[str | None, ...], str] = {}
    colours = {}
    for arm in run.experiment.arms:
        client_and_executor = arm.strategy.partition("?")[0]
        kind = (client_and_executor, arm.environment, arm.server)
        hue = HUES[len(hues) % len(HUES)]
        colours[arm.name] = hues.setdefault(kind, hue)
    return colours
