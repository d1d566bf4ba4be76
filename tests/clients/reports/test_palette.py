"""Colours of strategies: one list, stable, and readable on light and on dark grounds."""

from __future__ import annotations

import pytest

from clientlab.experiments.file import bundled, read_plan
from clientlab.reports.charts.chart_data import HUES, Look, colour_of, looks_of
from clients.documents import a_run, a_trial


def strategies_of(experiment: str) -> set[str]:
    """The strategies of a bundled experiment, without settings."""
    return {arm.strategy.partition("?")[0] for arm in read_plan(bundled()[experiment]).arms}


MANY = {name for name in bundled() if len(strategies_of(name)) > len(HUES)}


@pytest.mark.parametrize("experiment", sorted(set(bundled()) - MANY))
def test_no_two_strategies_of_a_bundled_experiment_share_a_colour(experiment):
    """The eight of the demo among them: the pictures that the lab comes with can be read by colour alone.

    Some have more strategies than there are colours: their dashes differ, too.
    """
    strategies = strategies_of(experiment)
    assert len({colour_of(name) for name in strategies}) == len(strategies)


def test_few_experiments_have_more_strategies_than_colours():
    """The atlas, and those that compare all clients of streams, or all answers to faults."""
    assert {"atlas"} < MANY <= {"atlas", "streams", "llm-sdks", "faults", "idle", "idle-5"}


def test_the_demo_uses_every_colour():
    """It has as many strategies as there are colours."""
    assert sorted(map(colour_of, strategies_of("demo"))) == list(range(len(HUES)))


def test_a_strategy_is_in_one_list_at_most():
    """Else the first list would decide unnoticed."""
    listed = [name for hue in HUES for name in hue.strategies]
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(("name", "colour"), [("urllib3", 3), ("http.client@threads", 6), ("mine.py:Mine", 4)])
def test_a_strategy_in_no_list_has_a_colour_by_its_name(name, colour):
    """In every process the same, with settings as well, whatever other strategies exist."""
    assert colour_of(name) == colour_of(f"{name}?pool=8") == colour


def test_strategies_of_one_colour_have_different_dashes():
    """In the order of the run's experiment; settings change neither."""
    run = a_run(*(a_trial(name) for name in ("sync", "requests?pool=1", "ab", "requests?pool=2", "pycurl")))
    assert looks_of(run) == {
        "sync": Look(0, 0), "requests?pool=1": Look(0, 1), "ab": Look(0, 2), "requests?pool=2": Look(0, 1),
        "pycurl": Look(6, 0),
    }  # fmt: skip


@pytest.mark.parametrize("hue", HUES, ids=[hue.light for hue in HUES])
def test_a_line_has_a_contrast_of_3_with_its_ground(hue):
    """WCAG 2.2, 1.4.11, on the grounds of the style sheet."""
    assert contrast(hue.light, "#ffffff") >= 3
    assert min(contrast(hue.dark, ground) for ground in ("#14171b", "#1b1f24")) >= 3


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, as WCAG defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """The relative luminance of ``#rrggbb``."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
