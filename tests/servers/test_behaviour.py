"""Behaviours read from queries."""

from __future__ import annotations

import pytest

from mockupstream.behaviour import BehaviourReader
from mockupstream.refusals import RefusedError
from mockupstream.settings import read_settings


def reader(**variables: str) -> BehaviourReader:
    """Return a reader for these MOCKUPSTREAM_ variables."""
    return BehaviourReader(read_settings({f"MOCKUPSTREAM_{name}": value for name, value in variables.items()}))


def test_the_query_wins() -> None:
    behaviour = reader(DELAY="120ms").read("delay=5ms&status=404&delay=7ms&lon=1%2E5&empty=")
    assert behaviour.wait == (0.005, "delay;dur=5.0")
    assert behaviour.status == 404
    assert behaviour.parameters == {"delay": "5ms", "status": "404", "lon": "1.5", "empty": ""}


def test_a_draw_beyond_the_limit_is_refused() -> None:
    ours = reader(MAX_DELAY="1s")
    behaviour = ours.read("delay=normal:1s,100s")

    def draw_often() -> None:
        for _ in range(100):
            ours.wait(behaviour)

    with pytest.raises(RefusedError, match="normal:1s,100s"):
        draw_often()


@pytest.mark.parametrize("query", ["delay=", "delay=soon", "delay=61", "status=99", "status=1e2", "seed=-1"])
def test_what_cannot_be_read_is_refused(query: str) -> None:
    ours = reader()
    with pytest.raises(RefusedError) as refused:
        ours.wait(ours.read(query))
    assert refused.value.status == 400
