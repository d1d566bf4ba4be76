"""Garbage of imports and of the warm-up: none of it is left for the measured part."""

from __future__ import annotations

import pytest

from clientlab.workload.workload import Workload
from clients.measured import measure

LITTERS = """
import gc

class Cycle:
    def __init__(self):
        self.itself = self

class Litters:
    '''Each request leaves garbage that only the collector frees. A body has a byte for each piece that is left.'''

    def __init__(self, budget, opened): ...

    def open(self):
        gc.disable()  # of itself, it runs at moments that nobody chose

    def send(self, request):
        left = sum(type(one) is Cycle for one in gc.get_objects())
        Cycle()
        return 200, b"x" * left

    def close(self): ...
"""


@pytest.mark.real
@pytest.mark.parametrize("connections", ["cold", "warm"])
def test_no_garbage_of_the_warm_up_is_left_when_the_clock_starts(connections, tmp_path):
    path = tmp_path / "litters.py"
    path.write_text(LITTERS)
    workload = Workload(requests=1, warmup=10, connections=connections)
    done = measure(f"{path}:Litters", workload, "http://127.0.0.1:9")
    assert done.samples.records["bytes"].tolist() == [0]
