"""The colours of strategies, the same in every chart."""

from __future__ import annotations

from clientlab.results.document import Run

# Okabe and Ito's palette for colour-blind readers (jfly.uni-koeln.de/color), with violet for yellow and grey for black,
# for a light and for a dark page. Every colour has a contrast of at least 3 with its page.
HUES = ("#0072b2", "#d55e00", "#009e73", "#b8628f", "#b97f00", "#2f93cf", "#5b3df0", "#6b7280")
DARK_HUES = ("#3f9fe0", "#f07a3c", "#16b98c", "#dd97bf", "#e69f00", "#8fd0f5", "#8f7bff", "#9aa3ae")
GREY = HUES[-1]
"""The colour of anything but a strategy."""


def colours_of(run: Run) -> dict[str, str]:
    """Map strategies to colours. Settings do not change a colour: ``NAME?pool=8`` has that of ``NAME``."""
    strategies = [arm.strategy for arm in run.experiment.arms] + [trial.strategy for trial in run.trials]
    names = list(dict.fromkeys(strategy.partition("?")[0] for strategy in strategies))
    return {name: HUES[names.index(name.partition("?")[0]) % len(HUES)] for name in strategies}
