"""What becomes of a request that its caller cancels, or that its library does."""

from __future__ import annotations

import asyncio

import pytest

from clientlab.errors import Fault
from clientlab.measuring.cancelling import CancellingSender
from clientlab.workload.cancels import Cancellation
from clientlab.workload.workload import Request

REQUEST = Request("GET", "http://127.0.0.1/", {}, None)


async def _probed(_send):
    raise AssertionError("nothing probes")


async def _kind(send, after, way, *, double):
    """The kind of the one request's error."""
    sender = CancellingSender(lambda _: Cancellation(after, way), _probed, [0], double=double)
    for _ in sender:
        with pytest.raises(Fault) as raised:
            await sender.asending(send)(REQUEST)
    return raised.value.kind


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("way", ["task", "timeout"])
def test_a_caller_that_gives_up_is_told_from_a_library_that_does(way, double):
    """The first is an outcome of its own. The second is an error, whatever the caller had in mind for later."""

    async def endless(_request):
        await asyncio.Event().wait()

    async def cancels_itself(_request):
        raise asyncio.CancelledError

    assert asyncio.run(_kind(endless, 0.01, way, double=double)) == "cancelled"
    assert asyncio.run(_kind(cancels_itself, 60.0, way, double=double)) == "other:CancelledError"
