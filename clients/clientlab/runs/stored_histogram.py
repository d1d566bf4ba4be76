"""Whether a histogram of a run file is one: it may come from anywhere, and is packed.

Looked at before any report unpacks it: how much it unpacks to, whether its buckets are the lab's, and what they hold.
"""

from __future__ import annotations

import base64
import zlib

import numpy as np
from hdrh.codec import (
    HdrCookieException,
    HdrHistogramSettingsException,
    HdrLengthException,
    PayloadHeader,
    ext_header_size,
    payload_header_size,
)
from hdrh.histogram import HdrHistogram

from clientlab.analysis import summary
from clientlab.workload import MOST_REQUESTS

MOST_CHARACTERS = 1 << 20
_EMPTY = summary.histogram_of(np.empty(0))
_MOST_BYTES = payload_header_size + 9 * _EMPTY.counts_len
"""Of one that is unpacked: a count takes nine bytes at most (HdrHistogram, V2, LEB128)."""


def check(encoded: str) -> None:
    """Raises ValueError for what is no HDR histogram (V2, compressed, base64) of the lab's buckets."""
    if len(encoded) > MOST_CHARACTERS:
        raise ValueError(f"no histogram: {len(encoded):,} characters, and no more than {MOST_CHARACTERS:,} are read")
    try:
        _check_header(base64.b64decode(encoded))
        counts = np.ctypeslib.as_array(HdrHistogram.decode(encoded).counts)
    except (
        ValueError, TypeError, IndexError, OverflowError, zlib.error,
        HdrCookieException, HdrHistogramSettingsException, HdrLengthException,
    ) as error:  # fmt: skip
        raise ValueError(f"no histogram: {error or type(error).__name__}") from error
    if counts.min() < 0 or counts.max() > MOST_REQUESTS:
        raise ValueError(f"no histogram: {counts.min():,} to {counts.max():,} requests in a bucket")


def _check_header(packed: bytes) -> None:
    """Size and settings, before memory is taken for them."""
    unpacking = zlib.decompressobj()
    content = unpacking.decompress(packed[ext_header_size:], _MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"it unpacks to more than {_MOST_BYTES:,} bytes")
    header = PayloadHeader.from_buffer_copy(content)
    settings = (header.lowest_trackable_value, header.highest_trackable_value, header.significant_figures)
    ours = (_EMPTY.lowest_trackable_value, _EMPTY.highest_trackable_value, _EMPTY.significant_figures)
    if settings != ours:
        raise ValueError(f"its lowest and highest value and digits are {settings}, and not {ours}")
