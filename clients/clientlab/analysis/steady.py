"""The steady part of a closed load for a duration: its requests and their rate.

A slice begins with a request in every slot, on idle connections. If requests wait for
something, the first ones are served sooner than later ones, and a busy client serves
them later. So the first wave does not count: the time from the moment at which all
slots are taken until as many requests have ended. Nor do the first 50 ms: the load
begins with even phases, and pycurl in threads loses up to 14 % of its rate while they
mix. After the deadline no requests follow, so those that begin in the last wave do not
count either. Between both, each request is followed to its own end.

Little's law needs a load that is stationary (Little 1961), which a slice is not: with
times censored at its end, a pool of 4 connections for 32 requests in flight had up to
2.2 times its true rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clientlab.analysis.request_figures import count_at_starts
from clientlab.observing.samples import Flags, Integers, Samples
from clientlab.results.trial import Outcome, Window
from clientlab.statistics.histogram import Floats

_FULL = 0.95  # share of the usual requests in flight from which all slots are taken
# Share of the concurrency from which it is the number of slots: one may always be
# between requests.
_EVERY_SLOT = 0.9
_WAVES_LEFT = 3  # that remain after the first one
_LONG_SHARE = 0.05  # of the time in flight, that long requests hold
_MIXING_SECONDS = 0.05  # in which the phases of short requests mix, if that is at most
_MIXING_SHARE = 0.25  # of a slice


@dataclass(frozen=True)
class Steady:
    """The windows of a trial's slices, and which of its records count.

    Those in a window count, or all if there are none.
    """

    windows: list[Window]
    counted: Flags


def find_steady(
    samples: Samples, outcome: Outcome, duration: float, slots: int
) -> Steady:
    """Return the steady parts of a trial.

    `samples`: with its slices one after the other. `duration`: seconds of all slices.
    `slots`: planned requests in flight.
    """
    records = samples.records
    lengths = np.array(outcome.slices or [outcome.wall_seconds])
    ends_of_slices = outcome.began + np.cumsum(lengths)
    begins = ends_of_slices - lengths
    edges = np.searchsorted(records["start"], begins[1:])
    places = np.split(np.arange(len(records)), edges)
    planned_length = duration / len(lengths)
    counted = np.zeros(len(records), np.bool_)
    windows = []
    for begin, part in zip(begins, places, strict=True):
        starts = records["start"][part] - begin
        ends = starts + records["seconds"][part]
        window, steady = _find_window(starts, ends, planned_length, slots)
        windows.append(window)
        counted[part[steady]] = True
    if not counted.any() and samples.delay_shares is not None:
        counted = samples.delay_shares == 1.0
    if not counted.any():
        counted[:] = True
    return Steady(windows, counted)


def _find_window(
    starts: Floats, ends: Floats, seconds: float, slots: int
) -> tuple[Window, slice]:
    """Return the window of a slice that lasts `seconds`, and its requests' places.

    `starts` are sorted.
    """
    in_flight = count_at_starts(starts, ends)
    slots = _count_slots(in_flight, slots)
    no_requests = slice(0, 0)
    if not len(starts):
        return Window(slots=slots), no_requests
    # Threads that wait for the GIL have no request in flight, so all slots may never be
    # taken at once.
    usual = min(slots, float(np.median(in_flight)))
    is_full = in_flight >= _FULL * usual
    full_at = starts[is_full.argmax()]
    ended = np.sort(ends)
    first = _count_until(ended, full_at) + slots
    if first > len(ended):
        return Window(slots=slots), no_requests
    wave = ended[first - 1] - full_at
    mixed_at = min(_MIXING_SECONDS, _MIXING_SHARE * seconds)
    if ended[first - 1] < mixed_at:
        first = _count_until(ended, mixed_at)
    last = int(np.searchsorted(ended, seconds - wave))
    last = min(last, len(ended) - slots)
    steady_at = ended[first - 1]
    length = seconds - steady_at
    if length < _WAVES_LEFT * wave or last <= first or wave <= 0:
        return Window(slots=slots, wave_seconds=wave), no_requests
    # When request k has ended, request k + slots begins in its place.
    steady = slice(first + slots, last + slots)
    waited = ended[first:last].sum()
    is_inside = (ended > steady_at) & (ended < seconds)
    inside = ended[is_inside] - steady_at
    quarter = length / 4
    window = Window(
        slots=slots,
        wave_seconds=wave,
        cycles=last - first,
        cycle_seconds=float(ends[steady].sum() - waited),
        ended=_weigh_inside(inside, length, wave),
        seconds=length - wave,
        early=_weigh_around(inside, quarter, quarter),
        late=_weigh_around(inside, 3 * quarter, quarter),
    )
    return window, steady


def _count_slots(in_flight: Integers, planned: int) -> int:
    """Return how many slots were used: fewer than planned if the client has fewer."""
    most = min(planned, int(in_flight.max(initial=0)))
    if most < _EVERY_SLOT * planned:
        return most
    return planned


def _count_until(ended: Floats, moment: float) -> int:
    """Return how many requests had ended at a moment. `ended` is sorted."""
    return int(np.searchsorted(ended, moment, side="right"))


def _weigh_inside(moments: Floats, length: float, wave: float) -> float:
    """Return how many moments lie between 0 and `length`.

    A burst of requests may end near a border, so the weight falls to 0 over a wave
    there.
    """
    to_border = np.minimum(moments, length - moments)
    weights = np.clip(to_border / wave, 0.0, 1.0)
    return float(weights.sum())


def _weigh_around(moments: Floats, middle: float, reach: float) -> float:
    """Return how many moments lie around a middle.

    The weight of each falls to 0 at a distance of `reach`.
    """
    distances = np.abs(moments - middle)
    weights = np.maximum(0.0, 1.0 - distances / reach)
    return float(weights.sum())


def find_long_seconds(seconds: Floats) -> float | None:
    """Return the length beyond which requests hold a twentieth of the time in flight.

    Return None without requests.
    """
    if not len(seconds):
        return None
    ordered = np.sort(seconds)
    held = np.cumsum(ordered)
    held_by_others = (1 - _LONG_SHARE) * held[-1]
    place = np.searchsorted(held, held_by_others)
    return float(ordered[place])
