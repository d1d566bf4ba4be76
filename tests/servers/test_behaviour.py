"""Behaviours read from queries."""

from __future__ import annotations

import pytest

from mockupstream.behaviour import BehaviourReader
from mockupstream.refusals import RefusedError
from mockupstream.settings import read_settings


def reader(**variables: str) -> BehaviourReader:
    """Return a reader for these MOCKUPSTREAM_ variables."""
    return BehaviourReader(read_settings({f"MOCKUPSTREAM_{name}": value for name, value in variables.items()}))


def test_defaults_hold_without_a_query() -> None:
    """A request without a query behaves as the environment says."""
    behaviour = reader(DELAY="120ms").read("")
    assert behaviour.wait == (0.12, "delay;dur=120.0")
    assert behaviour.status is None


def test_the_query_wins() -> None:
    """What the query says wins over the environment, and the first of a repeated name counts."""
    behaviour = reader(DELAY="120ms").read("delay=5ms&status=404&delay=7ms&lon=1%2E5&empty=")
    assert behaviour.wait == (0.005, "delay;dur=5.0")
    assert behaviour.status == 404
    assert behaviour.parameters == {"delay": "5ms", "status": "404", "lon": "1.5", "empty": ""}


def test_a_seed_settles_the_delay() -> None:
    """With a seed the same query waits the same, in every process; another seed waits otherwise."""
    first, again, other = (reader().read(f"delay=exponential:1ms&seed={seed}").wait for seed in (7, 7, 8))
    assert first == again
    assert first != other


def test_a_draw_beyond_the_limit_is_refused() -> None:
    """A draw of an unbounded delay that is beyond the limit is refused and named, not capped."""
    ours = reader(MAX_DELAY="1s")
    behaviour = ours.read("delay=normal:1s,100s")

    def draw_often() -> None:
        for _ in range(100):
            ours.wait(behaviour)

    with pytest.raises(RefusedError, match="normal:1s,100s"):
        draw_often()


@pytest.mark.parametrize("query", ["delay=", "delay=soon", "delay=61", "status=99", "status=1e2", "seed=-1"])
def test_what_cannot_be_read_is_refused(query: str) -> None:
    """A bad value is refused with 400."""
    ours = reader()
    with pytest.raises(RefusedError) as refused:
        ours.wait(ours.read(query))
    assert refused.value.status == 400
