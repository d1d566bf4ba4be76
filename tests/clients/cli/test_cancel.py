"""`--cancel`: which requests are given up, what the run file states of them, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from clientlab.analysis.histogram import decoded
from clientlab.results.figures import BY_KEY

LEAKING = """
import asyncio, http.client
from urllib.parse import urlsplit

class Leaking:
    errors = ((ConnectionError, "reset"),)
    def __init__(self, budget, opened):
        self._slots = asyncio.Semaphore(budget.connections)
        self._left = []
    async def open(self): ...
    async def send(self, request):
        url = urlsplit(request.url)
        await self._slots.acquire()
        # Shielded: on a busy machine a request is given up while it connects, and its socket would be closed.
        opening = asyncio.ensure_future(asyncio.open_connection(url.hostname, url.port))
        try:
            reader, writer = await asyncio.shield(opening)
            head = f"GET {url.path}?{url.query} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n"
            writer.write(head.encode())
            answer = await reader.read()
        except asyncio.CancelledError:
            self._left.append((opening, asyncio.create_task(asyncio.sleep(3600))))
            raise
        writer.close()
        self._slots.release()
        return int(answer.split()[1]), answer.partition(b"\\r\\n\\r\\n")[2]
    async def close(self):
        for _, task in self._left:
            task.cancel()
"""


@pytest.mark.slow
def test_all_arms_of_a_round_give_up_the_same_requests(clientlab, results):
    """A cancelled request is neither a success nor a failure, and is in no figure of the others; nothing is left."""
    said = clientlab(
        "run", "-t", "aiohttp@workers", "-t", "httpx2-async@workers", "-n", 300, "-c", 6, "--rounds", 1, "--seed", 3,
        "--delay", "10ms", "--cancel", "20%@0ms-20ms", "--keep-samples",
    )  # fmt: skip
    assert said.code == 0, said.err
    run = results.read("last")
    assert str(run.experiment.workloads["workload"].cancel) == "20%@0ms-20ms"
    first, second = run.trials
    assert first.cancelled.asked == second.cancelled.asked > 30
    for trial in run.trials:
        found = trial.cancelled
        assert trial.status == "done"
        assert trial.errors == {}
        assert found.by_timeout > 0
        assert found.by_task > 0
        assert found.ended == {"none": found.answered}
        assert found.count + found.answered == found.asked
        assert trial.requests + found.count == 300
        assert decoded(trial.histogram.encoded, trial.histogram.unit_seconds).total == trial.requests
        assert found.before.at_once == found.before.answered == 6
        assert [found.slots_lost, found.left("tasks"), found.left("sockets"), found.held] == [0, 0, 0, 0]
        assert 0 <= BY_KEY["recovery"].of(trial) < 2
        with np.load(results.folder / run.run / "samples" / f"trial-{trial.order:04d}.npz") as samples:
            assert len(samples["number"]) == 300
            assert int((samples["error"] == "cancelled").sum()) == found.count
            given_up = samples["seconds"][samples["error"] == "cancelled"]
            assert given_up.min() >= 0
            assert np.median(given_up) < 0.03
    assert "Cancelled requests by arm" in said.out


@pytest.mark.slow
def test_what_a_client_loses_is_found(clientlab, results, tmp_path):
    """A client that forgets slot and socket of a cancelled request, and a task, has lost as many of each."""
    (tmp_path / "mine.py").write_text(LEAKING)
    said = clientlab(
        "run", "-t", "mine.py:Leaking@workers", "-n", 60, "-c", 8, "--rounds", 1, "--seed", 2,
        "--delay", "20ms", "--cancel", "8%@4ms-9ms",
    )  # fmt: skip
    assert said.code == 0, said.err
    found = results.read("last").trials[0].cancelled
    assert 0 < found.count < 8
    assert 0 < found.slots_lost == found.left("tasks") == found.left("sockets") <= found.count


@pytest.mark.slow
def test_a_pool_without_a_slot_hangs_as_a_result(clientlab, results, tmp_path):
    """The limit of a request ends the trial; the run is complete, and the report has the word."""
    (tmp_path / "mine.py").write_text(LEAKING)
    said = clientlab(
        "run", "-t", "mine.py:Leaking@workers", "-n", 300, "-c", 3, "--rounds", 1, "--seed", 4, "--request-limit", "1s",
        "--timeout", "1s", "--delay", "10ms", "--cancel", "50%@4ms-60ms",
    )  # fmt: skip
    assert said.code == 0, said.err
    trial = results.read("last").trials[0]
    assert trial.hangs
    assert trial.cancelled.count >= 3
    assert "hangs" in said.out


@pytest.mark.slow
def test_streams_are_given_up_too(clientlab, results):
    """The others are read whole, and a second cancellation while the first is handled leaves nothing."""
    said = clientlab(
        "run", "-t", "aiohttp@workers", "-n", 60, "-c", 4, "--rounds", 1, "--stream", "sse", "--events", 10,
        "--every", "2ms", "--cancel", "30%,double",
    )  # fmt: skip
    assert said.code == 0, said.err
    trial = results.read("last").trials[0]
    assert trial.cancelled.count > 5
    assert trial.streams.events == 10 * trial.requests
    assert trial.cancelled.slots_lost == 0


@pytest.mark.slow
def test_a_probe_waits_for_a_small_pool(clientlab, results):
    """Sixteen requests take sixteen delays on one connection, longer than a probe that is silent: none is given up."""
    said = clientlab(
        "run", "-t", "aiohttp@workers?pool=1", "-n", 40, "-c", 16, "--delay", "2ms", "--cancel", "20%", "--rounds", 1
    )  # fmt: skip
    assert said.code == 0, said.err
    found = results.read("last").trials[0].cancelled
    assert [(one.answered, one.at_once) for one in (found.before, found.after)] == [(16, 1), (16, 1)]
    assert (found.slots_lost, found.after.gave_up_seconds) == (0, None)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("-t", "requests-session"), "strategy 'requests-session' cannot be cancelled"),
        (("-t", "httpx-async@async-processes", "-c", 4), "write httpx-async@workers"),
        (("-t", "aiohttp@workers", "--rate", "100/s"), "closed load"),
        (("-t", "aiohttp@workers", "--connections", "cold"), "leave out"),
        (("-t", "aiohttp@workers", "--shards", 2), "one process"),
        (("-t", "aiohttp@workers", "--timeout", "200ms"), "its probe's requests take 0.25 s with so many in flight"),
        (("-t", "aiohttp@workers", "--path", "/delay/0.01"), "its probe has a delay of its own"),
        (("-t", "aiohttp@workers", "--path", "/?delay=5ms"), "its probe has a delay of its own"),
    ],
)
def test_what_cannot_be_cancelled_is_refused(clientlab, words, why):
    """One line says why, and what to write."""
    said = clientlab("run", *words, "-n", 10, "--cancel", "10%")
    assert said.code == 2
    assert why in said.err
    assert len(said.err.strip().splitlines()) == 1


def test_a_wrong_share_is_refused(clientlab):
    """The option names itself and its forms."""
    said = clientlab("run", "-t", "aiohttp@workers", "-n", 10, "--cancel", "110%")
    assert said.code == 2
    assert "10%@0ms-50ms" in said.err
