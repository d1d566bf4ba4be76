"""Values of which some are only lower bounds: "at least 300 ms", because nobody saw the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class BoundedValue:
    """A value. `at_least`: it is only a lower bound of the true value."""

    value: float
    at_least: bool = False


def median_of(values: Sequence[BoundedValue]) -> BoundedValue:
    """The median of one or more values. It is a lower bound if it would be larger with larger bounds."""
    least = median(one.value for one in values)
    most = median(math.inf if one.at_least else one.value for one in values)
    return BoundedValue(least, least != most)
