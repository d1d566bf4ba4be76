"""Histograms of latencies, merged."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.histogram import histogram_of, merged

WIDTH = 2**-10  # of a bucket, as a share of its value: three significant digits


def stored(seconds) -> tuple[str, float]:
    """A histogram as the run file has it."""
    return histogram_of(np.array(seconds)).encode().decode(), 1e-9


def test_quantiles_of_merged_histograms_are_those_of_all_values_together():
    """To a bucket's width; they are not averages of the trials' quantiles."""
    draw = np.random.default_rng(1)
    rounds = [draw.lognormal(-6 + number, 0.5, 4000) for number in range(3)]
    shares = np.array([0.0, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0])
    found = merged(map(stored, rounds))
    assert found.total == 12_000
    exact = np.quantile(np.concatenate(rounds), shares, method="inverted_cdf")
    assert found.quantiles(shares) == pytest.approx(exact, rel=2 * WIDTH)


def test_shares_between_edges_add_up_to_what_lies_between_them():
    """Of all latencies, those beyond the edges included."""
    found = merged([stored([0.001] * 6 + [0.01] * 3 + [1.0])])
    assert found.shares(np.array([0.0005, 0.005, 0.05])).tolist() == [0.6, 0.3]


def test_the_unit_is_the_one_stored():
    """A histogram in another unit than nanoseconds is read in the unit that it stores."""
    encoded, _ = stored([0.002])
    assert merged([(encoded, 1e-6)]).seconds.tolist() == pytest.approx([2.0], rel=WIDTH)


@pytest.mark.parametrize("histograms", [[], [stored([])]], ids=["none", "empty"])
def test_nothing_has_no_distribution(histograms):
    """There are no quantiles of it."""
    assert merged(histograms) is None
