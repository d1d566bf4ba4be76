"""Which requests are cancelled: the texts that say so, and the draws that decide."""

from __future__ import annotations

from math import sqrt

import pytest

from clientlab.workload.cancelled_requests import cancellation_of, probing
from clientlab.workload.cancels import Cancels
from clientlab.workload.delays import Delay
from clientlab.workload.faults import Faults
from clientlab.workload.workload import Workload

COUNT = 2000


@pytest.mark.parametrize("text", ["none", "10%", "12.5%@0ms-50ms", "100%@1s-2s", "3%,double", "10%@5ms-5ms,double"])
def test_a_text_is_read_and_written_without_a_loss(text):
    """A run file has the text that the user wrote."""
    assert str(Cancels.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("110%", "more than 0% to 100%"),
        ("0%", "more than 0% to 100%"),
        ("0.1", "is not a share"),
        ("10%@50ms", "the first and the last moment"),
        ("10%@50ms-10ms", "begins before it ends"),
        ("10%@0ms-0ms", "begins before it ends"),
        ("10%@x-10ms", "is not a length of time"),
        ("10%,twice", "is no option"),
    ],
)
def test_a_wrong_text_is_refused_with_what_to_write(text, why):
    """The message names the part that is wrong."""
    with pytest.raises(ValueError, match=why):
        Cancels.parse(text)


def test_shares_and_ways_are_those_that_were_written():
    """Of 100 seeds, the observed share is within three standard deviations in all but one, and the ways are halves."""
    wanted, outside, by_timeout, chosen = 0.2, 0, 0, 0
    for seed in range(100):
        found = [one for k in range(COUNT) if (one := Cancels.parse("20%").at(seed, 0.1)(k)) is not None]
        outside += abs(len(found) / COUNT - wanted) > 3 * sqrt(wanted * (1 - wanted) / COUNT)
        by_timeout += sum(one.way == "timeout" for one in found)
        chosen += len(found)
    assert outside <= 1
    assert abs(by_timeout / chosen - 1 / 2) < 3 * sqrt(1 / 4 / chosen)


def test_seed_and_number_alone_decide():
    """Equal seeds cancel the same requests at the same moments, another seed others, and no request of a warm-up."""
    of = Cancels.parse("50%@1ms-9ms").at
    first, again, other = ([of(seed, 0.0)(k) for k in range(200)] for seed in (1, 1, 2))
    assert first == again != other
    assert all(1e-3 <= one.after <= 9e-3 for one in first if one is not None)
    assert [of(1, 0.0)(k) for k in range(-50, 0)] == [None] * 50


def test_the_usual_window_is_longer_than_the_mean_delay():
    """Without a window, moments reach beyond the delay of the upstream, and so into the body."""
    of = cancellation_of(Workload(cancel=Cancels.parse("100%"), delay=Delay.parse("100ms"), seed=5))
    moments = [of(k).after for k in range(COUNT)]
    assert 0.149 < max(moments) <= 0.15
    assert min(moments) < 0.001


def test_a_probe_has_a_delay_of_its_own_and_no_fault():
    """Its requests differ from those of the workload in nothing but what decides how long they take."""
    sent = probing(Workload(path="/json", faults=Faults.parse("reset:50%"), cancel=Cancels.parse("50%")), 100)
    assert (sent.path, sent.faults, sent.cancel) == ("/json", None, None)
    assert sent.delay is not None
    assert sent.delay.constant == 0.4
