"""The numbers of a trial's requests: a count of them, or as many as begin in time."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from clientlab.executors.executor_interface import RequestNumbers, SharedRange


def test_threads_without_a_gil_share_the_numbers_of_a_count():
    shared = SharedRange(range(3, 20_003))
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(list, [shared] * 4))
    assert sorted(number for numbers in taken for number in numbers) == list(range(3, 20_003))


def test_the_least_number_begins_however_late_it_is():
    """A pool may have taken the whole duration to start: its share of the least number is sent, and no more."""
    numbers = RequestNumbers(None, time.perf_counter() - 1, first=2, step=4, least=3)
    assert (list(numbers), numbers.extended) == ([2, 6, 10], True)
    assert list(numbers) == []


def test_a_duration_in_which_enough_begins_is_not_extended():
    numbers = RequestNumbers(None, time.perf_counter() + 0.2, least=3)
    taken = len(list(numbers))
    assert taken > 3
    assert (list(numbers), numbers.extended) == ([], False)
