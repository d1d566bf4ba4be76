"""Histograms of latencies, merged."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.histogram import Distribution, decoded, histogram_of, merged

WIDTH = 2**-10  # of a bucket, as a share of its value: three significant digits


def stored(seconds, unit: float = 1e-9) -> Distribution:
    """A histogram as it is read from a run file."""
    return decoded(histogram_of(np.array(seconds)).encode().decode(), unit)


def test_quantiles_of_merged_histograms_are_those_of_all_values_together():
    """To a bucket's width; they are not averages of the trials' quantiles."""
    draw = np.random.default_rng(1)
    rounds = [draw.lognormal(-6 + number, 0.5, 4000) for number in range(3)]
    shares = np.array([0.0, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0])
    found = merged([stored(one) for one in rounds])
    assert found.total == 12_000
    exact = np.quantile(np.concatenate(rounds), shares, method="inverted_cdf")
    assert found.quantiles(shares) == pytest.approx(exact, rel=2 * WIDTH)


def test_shares_between_edges_add_up_to_what_lies_between_them():
    """Of all latencies, those beyond the edges included."""
    found = stored([0.001] * 6 + [0.01] * 3 + [1.0])
    assert found.shares(np.array([0.0005, 0.005, 0.05])).tolist() == [0.6, 0.3]
