"""Samples of requests that nobody sent."""

from __future__ import annotations

import numpy as np

from clientlab.observing.samples import RECORD, Records, Samples


def records_of(start, seconds, error=0) -> Records:
    """Return records of requests that ended."""
    records = np.zeros(len(seconds), RECORD)
    records["start"] = start
    records["seconds"] = seconds
    records["error"] = error
    records["done"] = 1
    return records


def samples_of(records: Records, numbers=None, kinds=None, **more) -> Samples:
    """Return samples with these records.

    `numbers`: of the requests; None counts them from 0. `kinds`: of error codes.
    """
    if numbers is None:
        numbers = np.arange(len(records))
    return Samples(records, numbers, {}, {}, kinds or {}, **more)
