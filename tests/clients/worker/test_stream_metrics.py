"""The metrics of streams, off a log of events that the test writes, and off that of a real trial while it grows."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from clientlab.results.labels import ARM
from clientlab.results.machine import machine_id
from clientlab.results.server_counters import ServerCounters, ServerUse
from clientlab.running.trial_runner import TrialRunner, log_folder
from clientlab.samples.event_log import ANSWERED, BEGUN, MARKED, UNMARKED, EventLog
from clientlab.samples.log import SampleLog
from clientlab.testbeds.compose import ComposeTestbed
from clientlab.worker.exporter import Exporter
from clientlab.worker.stream_metrics import STREAM_BUCKETS
from clientlab.workload.delays import Delay
from clientlab.workload.shard_workload import share_of
from clientlab.workload.workload import Workload
from clients.documents import a_planned_trial, a_trial
from running import gunicorn

RUN = "20240506-070809-streams-abcd"
STREAM = Workload(stream="sse", requests=10, events=3)
SAME_MACHINE = ServerCounters(upstream=ServerUse(cpu_seconds=0.0, machine=machine_id()))


class Page:
    """An exporter's page, read as Prometheus reads it."""

    def __init__(self, exporter: Exporter) -> None:
        self.exporter = exporter
        self._registry = CollectorRegistry()
        self._registry.register(exporter)

    def scrape(self) -> dict[str, float]:
        """The samples of streams by name, and by the bucket that they are of."""
        found = {}
        for family in text_string_to_metric_families(generate_latest(self._registry).decode()):
            for sample in family.samples:
                if family.name.startswith("clientlab_stream"):
                    assert set(ARM) <= set(sample.labels)
                    more = [value for label, value in sample.labels.items() if label not in ARM]
                    found[" ".join([sample.name.removeprefix("clientlab_"), *more])] = sample.value
        return found


class Logs:
    """The logs of a trial. `event`: at a moment, of a stream, with the moment at which it was written."""

    def __init__(self, folder) -> None:
        self.samples = SampleLog(folder, 0, 100)
        self.samples.begin()
        self.events = EventLog(folder, 100)

    def note(self, kind: int, request: int, at: float, digits: bytes = b"") -> None:
        self.events.write_late(self.events.next_place(), request, at, digits, kind)

    def event(self, request: int, at: float, written: float, number: int = 0) -> None:
        self.note(MARKED, request, at, b"%06d%018d%06d" % (number, round(written * 1e9), 0))

    def end(self, request: int, *, error: int = 0) -> None:
        self.samples.write_late(request, 1.0, 0.5, 7, 200, error)


@pytest.fixture
def logs(tmp_path):
    made = Logs(tmp_path)
    yield made
    made.events.close()
    made.samples.close(0)


def page_of(folder, workload: Workload = STREAM, before: ServerCounters = SAME_MACHINE) -> Page:
    exporter = Exporter(RUN, "streams", a_trial(concurrency=4), workload, folder)
    exporter.served(before)
    exporter.started()
    return Page(exporter)


def test_events_are_counted_while_their_stream_is_open(tmp_path, logs):
    """First events from the send, gaps and lags from the log; also where a gap lies between two scrapes."""
    page = page_of(tmp_path)
    assert page.scrape()["stream_events_total"] == 0
    for request in (0, 1):
        logs.note(BEGUN, request, 10.0)
        logs.note(ANSWERED, request, 10.1)
    logs.event(0, 10.2, 10.15)
    logs.event(1, 10.25, 10.24)
    logs.event(0, 10.21, 10.205)
    first = page.scrape()
    assert (first["stream_events_total"], first["streams_open"]) == (3, 2)
    assert first["stream_first_event_seconds_sum"] == pytest.approx(0.2 + 0.25)
    assert (first["stream_gap_seconds_count"], first["stream_gap_seconds_bucket 0.012"]) == (1, 1)
    logs.event(0, 10.31, 10.3)
    logs.end(0)
    second = page.scrape()
    assert (second["stream_events_total"], second["streams_open"]) == (4, 1)
    assert second["stream_first_event_seconds_count"] == 2
    assert second["stream_gap_seconds_sum"] == pytest.approx(0.01 + 0.1)
    assert second["stream_lag_seconds_sum"] == pytest.approx(0.05 + 0.01 + 0.005 + 0.01)
    assert (second["stream_lag_seconds_bucket 0.035"], second["stream_lag_seconds_bucket +Inf"]) == (3, 4)
    page.exporter.ended()
    assert page.scrape()["streams_open"] == 0


def test_events_that_came_together_are_those_written_before_the_previous_one_arrived(tmp_path, logs):
    """In one scrape or in two; those of another stream do not count."""
    page = page_of(tmp_path)
    for request in (0, 1):
        logs.note(BEGUN, request, 10.0)
    logs.event(0, 10.5, 10.1)
    logs.event(0, 10.5, 10.2)
    logs.event(1, 10.5, 10.4)
    assert page.scrape()["stream_events_together_total"] == 1
    logs.event(0, 10.51, 10.3)
    logs.event(1, 10.7, 10.6)
    assert page.scrape()["stream_events_together_total"] == 2


def test_the_last_events_of_an_ended_stream_count_with_their_gaps(tmp_path, logs):
    """Their records may be read after the sample of their request, if another thread wrote in front of them."""
    page = page_of(tmp_path)
    logs.note(BEGUN, 0, 10.0)
    logs.event(0, 10.1, 10.1)
    logs.end(0)
    page.scrape()
    logs.event(0, 10.2, 10.2)
    assert page.scrape()["stream_gap_seconds_count"] == 1


def test_a_lag_is_unknown_between_two_machines_and_without_marks(tmp_path, logs):
    """There is no such metric: zero would look like no lag."""
    elsewhere = ServerCounters(upstream=ServerUse(cpu_seconds=0.0, machine="another"))
    for before in (elsewhere, ServerCounters()):
        found = page_of(tmp_path, before=before).scrape()
        assert not [name for name in found if "lag" in name or "together" in name]
        assert "stream_gap_seconds_count" in found
    page = page_of(tmp_path)
    logs.note(BEGUN, 0, 10.0)
    logs.note(UNMARKED, 0, 10.2)
    logs.note(UNMARKED, 0, 10.2)
    found = page.scrape()
    assert (found["stream_events_total"], found["stream_gap_seconds_count"]) == (2, 1)
    assert (found["stream_lag_seconds_count"], found["stream_events_together_total"]) == (0, 0)


def test_a_dropped_request_had_no_stream(tmp_path, logs):
    """Of an open load: it was not sent, so it ends none."""
    page = page_of(tmp_path, Workload(stream="sse", requests=10, events=3, rate=10))
    logs.note(BEGUN, 1, 10.0)
    logs.end(0, error=logs.samples.error_code("dropped", "too late"))
    assert page.scrape()["streams_open"] == 1


def test_requests_without_a_stream_have_no_such_metrics(tmp_path, logs):  # noqa: ARG001
    """Nor has a log of events to be there."""
    assert page_of(tmp_path, Workload(requests=10)).scrape() == {}


def test_round_times_lie_within_a_bucket():
    """The gaps around `every` are on both sides of it, and lie in one bucket: 10 % on either side."""
    for digit in (1, 2, 5):
        for power in range(-3, 1):
            inside = [end for end in STREAM_BUCKETS if 0.9 * digit * 10**power <= end <= 1.1 * digit * 10**power]
            assert inside == []


def test_a_real_trial_is_seen_while_it_runs_and_ends_as_its_run_file(tmp_path):
    """Scraped again and again: counters never fall, streams are open, and all events are there at the end."""
    workload = Workload(stream="sse", requests=6, events=40, every=Delay.parse("10ms"), warmup=1, concurrency=3)
    planned = a_planned_trial("aiohttp@workers").model_copy(update={"concurrency": 3})
    page = Page(Exporter(RUN, "streams", planned, workload, log_folder(tmp_path, planned, workload)))
    seen = []
    with gunicorn("aiohttp") as server:
        run_trial = TrialRunner(
            ComposeTestbed({"AIOHTTP_ADDRESS": f"127.0.0.1:{server.port}"}),
            on_start=page.exporter.started, on_end=page.exporter.ended, on_reading=page.exporter.served,
        )  # fmt: skip
        trial = run_trial(planned, workload, tmp_path, lambda _finished: seen.append(page.scrape()))
    page.exporter.settle(trial)
    seen.append(page.scrape())
    last = seen[-1]
    assert (trial.status, trial.streams.events) == ("done", 240)
    assert (last["stream_events_total"], last["stream_first_event_seconds_count"]) == (240, 6)
    assert (last["stream_gap_seconds_count"], last["stream_lag_seconds_count"]) == (234, 240)
    assert last["stream_lag_seconds_sum"] / 240 == pytest.approx(trial.streams.lag_seconds.mean, rel=0.01)
    assert last["stream_gap_seconds_sum"] / 234 == pytest.approx(trial.streams.gap_seconds.mean, rel=0.01)
    assert last["stream_events_together_total"] / 234 == pytest.approx(trial.streams.together, abs=1e-9)
    assert 1 <= max(one.get("streams_open", 0) for one in seen) <= 3
    assert last["streams_open"] == 0
    for name in (key for key in last if "open" not in key):
        values = [one[name] for one in seen if name in one]
        assert values == sorted(values), name


def test_the_metrics_of_shards_add_up_to_those_of_their_trial(tmp_path):
    """Each counts the events of its own streams."""
    workload = Workload(stream="sse", requests=4, events=2, shards=2)
    found = []
    for place in range(2):
        logs = Logs(tmp_path / str(place))
        page = page_of(tmp_path / str(place), share_of(workload, place, 4))
        for request in range(2):
            logs.note(BEGUN, request, 10.0)
            logs.event(request, 10.1, 10.05)
            logs.event(request, 10.2, 10.15)
        found.append(page.scrape())
        logs.events.close()
        logs.samples.close(0)
    assert sum(one["stream_events_total"] for one in found) == 8
    assert sum(one["stream_gap_seconds_count"] for one in found) == 4
    assert sum(one["streams_open"] for one in found) == 4
