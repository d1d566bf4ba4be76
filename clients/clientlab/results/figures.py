"""Figures: the numbers of one finished trial, each defined once.

Tables, charts, metrics and claims read them. A new figure is an entry of `FIGURES`, and
the code that measures it. A figure can be a lower bound ("≥ 300 ms"): a quantile that
falls on a failed request is one, because nobody knows how long its answer would have
taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import mean, median
from typing import Any, Literal

from clientlab import units
from clientlab.errors import FieldError
from clientlab.results.trial import Trial
from clientlab.units import Unit
from clientlab.workload.values import Link
from clientlab.workload.workload import Workload, value_of

When = Literal["always", "known", "large bodies", "durations"]
"""A table shows a column always, if a trial has the figure, if bodies have 1 MiB or
more, or if numbers of requests differ.
"""


@dataclass(frozen=True)
class Direction:
    """Which way is good, and the words for changes for the better and for the worse."""

    better: str
    worse: str
    less_is_better: bool = True


_FASTER = Direction("faster", "slower")
_FASTER_IF_MORE = Direction("faster", "slower", less_is_better=False)
_LESS = Direction("less", "more")
_FEWER = Direction("fewer", "more")
_MORE = Direction("more", "fewer", less_is_better=False)


@dataclass(frozen=True)
class Metric:
    """The gauge ``clientlab_run_NAME``.

    `quantile`: the value of its label of that name, if it has one.
    """

    name: str
    quantile: str | None = None

    @property
    def name_at_least(self) -> str:
        """The name of the gauge for lower bounds: ``latency_at_least_seconds``.

        They must not look like values.
        """
        stem, _, unit = self.name.rpartition("_")
        return f"{stem}_at_least_{unit}"


@dataclass(frozen=True)
class Figure:
    """A figure of a trial."""

    key: str
    """Short name, for thresholds and comparisons."""

    name: str
    """Full name with its unit, for CSV and claims; users may write either name."""

    label: str
    description: str
    unit: Unit

    of: Callable[[Trial], float | None]
    """Returns the figure in `unit`, or None if the trial does not have it."""

    direction: Direction

    resolution: float = 0.0
    """The smallest relative difference that can be measured."""

    heading: str | None = None
    """The heading of its column in a run's table. None: it has no column."""

    when: When = "known"
    """When the table shows its column."""

    metric: Metric | None = None

    cost: bool = False
    """The HTML report draws it beside time, as a resource."""

    compared: bool = False
    """`clientlab compare` always shows it."""

    claimable: bool = True
    """A claim may compare it."""

    total: bool = False
    """It grows with the number of requests."""

    needs: (
        Literal[
            "call_timeout",
            "cold",
            "delay",
            "elapsed",
            "faults",
            "first_byte",
            "stream",
        ]
        | None
    ) = None
    """The field of the workload that records it."""

    of_failed: bool = False
    """Failed trials that sent all their requests count too, and rounds are averaged."""

    scheduled: bool = False
    """The schedule of an open load decides it, so arms cannot be compared by it."""

    before_send: bool = False
    """It ends when a request is sent, so it never holds the wait for a connection."""

    bounded: Callable[[Trial], bool] | None = None
    """Returns whether a trial has only a lower bound. None: no trial does."""

    @property
    def less_is_better(self) -> bool:
        return self.direction.less_is_better

    @property
    def title(self) -> str:
        return self.label[0].upper() + self.label[1:]

    def is_known(self, workload: Workload, link: Link | None) -> bool:
        """Return whether trials of the workload have what the figure needs.

        A link takes the place of a delay.
        """
        linked = self.needs == "delay" and link is not None
        return self.needs is None or linked or bool(value_of(workload, self.needs))

    def values(self, trials: Iterable[Trial]) -> list[float]:
        """Return the figure of each finished trial that has it, in their order.

        `of_failed` says which failed trials count.
        """
        return [value for _, value in self._known(trials)]

    def over_rounds(self, trials: Iterable[Trial]) -> float | None:
        """Return the median over the trials, or the mean of a figure `of_failed`.

        None if no trial has it.
        """
        values = self.values(trials)
        if not values:
            return None
        return mean(values) if self.of_failed else float(median(values))

    def is_bound(self, trials: Iterable[Trial]) -> bool:
        """Return whether `over_rounds` is only a lower bound.

        It is one if it would be larger if the bounds of trials were.
        """
        if self.bounded is None:
            return False
        least = []
        most = []
        for trial, value in self._known(trials):
            least.append(value)
            most.append(math.inf if self.bounded(trial) else value)
        return bool(least) and median(least) != median(most)

    def has_bounds(self, trials: Iterable[Trial]) -> bool:
        """Return whether the figure of any trial is only a lower bound."""
        return self.bounded is not None and any(
            self.bounded(trial) for trial, _ in self._known(trials)
        )

    def text(self, value: float | None, *, at_least: bool = False) -> str:
        """Return the value as reports show it: "≥ 300 ms" for a lower bound."""
        return units.of_unit(value, self.unit, at_least=at_least)

    def _known(self, trials: Iterable[Trial]) -> Iterator[tuple[Trial, float]]:
        for trial in trials:
            sent_all = trial.figures.requests and not trial.partial
            if trial.status == "done" or (self.of_failed and sent_all):
                value = self.of(trial)
                if value is not None:
                    yield trial, float(value)


def _field(path: str) -> Callable[[Trial], Any]:
    """Return a function that reads a field: ``figures.open_load.dropped``.

    It returns None if a part is missing.
    """
    names = path.split(".")

    def read(trial: Trial) -> Any:
        value: Any = trial
        for name in names:
            if value is not None:
                value = getattr(value, name)
        return value

    return read


def _quotient(dividend: str, divisor: str) -> Callable[[Trial], Any]:
    """Return a function that divides two fields.

    It returns None if one of them is missing or the second is 0.
    """
    read_upper = _field(dividend)
    read_lower = _field(divisor)

    def divide(trial: Trial) -> Any:
        upper = read_upper(trial)
        lower = read_lower(trial)
        return None if upper is None or not lower else upper / lower

    return divide


def _quantile(part: str, name: str, **others: Any) -> dict[str, Any]:
    """Return the fields of a figure that is a quantile of a `part` of trials.

    `others`: further fields, or other values.
    """
    at_least = _field(f"{part}.at_least")
    return {
        "unit": "seconds",
        "of": _field(f"{part}.{name}"),
        "bounded": lambda trial: name in (at_least(trial) or ()),
        "direction": _FASTER,
        "resolution": 1e-3,  # reports show three significant digits
    } | others


def _latency(key: str, label: str, condition: str = "", **others: Any) -> Figure:
    return Figure(
        key,
        f"latency_{key}_seconds",
        label,
        label + condition,
        **_quantile("figures.latency_seconds", key, **others),
    )


def _median_and_p99(
    key: str, label: str, heading: str, meaning: str, of: str = "figures", **others: Any
) -> Iterator[Figure]:
    """Yield the median and the p99 of the times in a field of a part `of` trials.

    `key`: the field's name without its unit. `heading`: of their columns.
    """
    for quantile, words, short, label_value in (
        ("p50", "median ", "", "0.5"),
        ("p99", "99th percentile of the ", "p99 ", "0.99"),
    ):
        yield Figure(
            f"{key}_{quantile}",
            f"{key}_{quantile}_seconds",
            words + label,
            meaning.format(words),
            heading=short + heading,
            metric=Metric(f"{key}_seconds", label_value),
            **_quantile(f"{of}.{key}_seconds", quantile, **others),
        )


def _cpu_per_event(trial: Trial) -> Any:
    """Return the CPU seconds per event. A cold trial spends them on its imports."""
    if trial.is_cold:
        return None
    return _quotient("measured.cpu_seconds", "figures.stream.events")(trial)


_OF_STREAMS: dict[str, Any] = {
    "of": "figures.stream",
    "direction": _LESS,
    "needs": "stream",
}
_CPU_PER_EVENT = Figure(
    "cpu_per_event",
    "cpu_seconds_per_event",
    "CPU time per event",
    "streams: CPU time of the client's processes per event; ranks their arms",
    "seconds",
    _cpu_per_event,
    _LESS,
    heading="CPU/event",
    metric=Metric("cpu_seconds_per_event"),
    compared=True,
    needs="stream",
)
_STREAM_FIGURES = (
    _CPU_PER_EVENT,
    *_median_and_p99(
        "first_event",
        "time to the first event",
        "first event",
        "streams: {}time from the start of the request to the first event",
        **_OF_STREAMS,
    ),
    # Only the time to the first event counts failed streams, and holds the wait for a
    # connection.
    *_median_and_p99(
        "gap",
        "gap between events",
        "gap",
        "streams: {}gap between two consecutive events of a stream, as the client gets"
        " them",
        bounded=None,
        **_OF_STREAMS,
    ),
    *_median_and_p99(
        "lag",
        "lag of events",
        "lag",
        "streams: {}time from the server's write of an event until the client hands it"
        " over",
        bounded=None,
        **_OF_STREAMS,
    ),
    *_median_and_p99(
        "write_error",
        "write error",
        "write error",
        "streams: {}time by which the server wrote an event after its planned moment",
        bounded=None,
        **_OF_STREAMS,
    ),
    Figure(
        "together",
        "together_share",
        "share of events that arrived together",
        "streams: share of events that had been written before the client handed over"
        " the one before them",
        "share",
        _field("figures.stream.together_share"),
        _FEWER,
        heading="together",
        metric=Metric("together_share"),
        needs="stream",
    ),
    Figure(
        "events",
        "events",
        "events",
        "streams: events that the client handed over, of successful streams",
        "count",
        _field("figures.stream.events"),
        _MORE,
        metric=Metric("events"),
        claimable=False,
        total=True,
        needs="stream",
    ),
)

_SENT = "figures.open_load.sent_seconds"
_LATE = "figures.open_load.lateness_seconds"

OPEN_LOAD_FIGURES: tuple[Figure, ...] = (
    Figure(
        "sent_p50",
        "latency_from_send_p50_seconds",
        "median latency from the real start",
        "open load: median latency from the moment of sending",
        **_quantile(_SENT, "p50"),
    ),
    Figure(
        "sent_p99",
        "latency_from_send_p99_seconds",
        "99th percentile of latency from the real start",
        "open load: 99th percentile of latency from the moment of sending",
        **_quantile(_SENT, "p99", heading="p99 sent"),
    ),
    Figure(
        "late_p50",
        "lateness_p50_seconds",
        "median lateness",
        "open load: median delay between the planned start and sending; dropped"
        " requests count as later",
        **_quantile(
            _LATE,
            "p50",
            heading="late p50",
            metric=Metric("lateness_seconds", "0.5"),
            before_send=True,
        ),
    ),
    Figure(
        "late_p99",
        "lateness_p99_seconds",
        "99th percentile of lateness",
        "open load: 99th percentile of the delay between the planned start and sending",
        **_quantile(
            _LATE,
            "p99",
            heading="late p99",
            metric=Metric("lateness_seconds", "0.99"),
            before_send=True,
        ),
    ),
    Figure(
        "planned_rate",
        "planned_requests_per_second",
        "planned rate",
        "open load: planned requests per second of the schedule",
        "per-second",
        _field("figures.open_load.planned_per_second"),
        _MORE,
        heading="planned/s",
        metric=Metric("planned_requests_per_second"),
        claimable=False,
    ),
    Figure(
        "achieved_rate",
        "achieved_requests_per_second",
        "achieved rate",
        "open load: requests sent per second, until the schedule ended or the last one"
        " was sent",
        "per-second",
        _field("figures.open_load.achieved_per_second"),
        _MORE,
        heading="achieved/s",
        metric=Metric("achieved_requests_per_second"),
    ),
    Figure(
        "backlog",
        "backlog_requests",
        "largest backlog",
        "open load: the most requests that were due at once, and neither sent nor"
        " dropped",
        "count",
        _field("figures.open_load.most_backlog"),
        _FEWER,
        heading="backlog",
        metric=Metric("backlog_requests"),
    ),
    Figure(
        "dropped",
        "dropped_share",
        "share of dropped requests",
        "open load: share of requests that were too late to send",
        "share",
        _quotient("figures.open_load.dropped", "figures.requests"),
        _FEWER,
        heading="dropped",
        metric=Metric("dropped_share"),
        claimable=False,
    ),
)


def _seconds_at_rate(trial: Trial) -> float:
    """Return how long the trial's successful requests take at its rate.

    It is the wall time, unless there is a tail.
    """
    figures = trial.figures
    if figures.tail_seconds is None or not figures.requests_per_second:
        return trial.wall_seconds
    return figures.succeeded / figures.requests_per_second


def _cpu_per_request(trial: Trial) -> float | None:
    """Return the CPU seconds per successful request.

    They are those of the steady part, if the trial has one and they are known.
    """
    measured = trial.measured
    figures = trial.figures
    if measured is None or not figures.succeeded:
        return None
    if measured.steady_requests and any(window.cycles for window in figures.windows):
        succeeded_share = figures.succeeded / figures.requests
        succeeded = measured.steady_requests * succeeded_share
        return (measured.steady_cpu_seconds or 0.0) / succeeded
    return measured.cpu_seconds / figures.succeeded


def _seconds_per_request(trial: Trial) -> float | None:
    succeeded = trial.figures.succeeded
    if succeeded <= 0 or not trial.wall_seconds:
        return None
    return _seconds_at_rate(trial) / succeeded


def _received(trial: Trial) -> float | None:
    if trial.figures.bytes_received is None or not trial.wall_seconds:
        return None
    return trial.figures.bytes_received / _seconds_at_rate(trial)


def attempts_per_call(trial: Trial) -> float | None:
    """Return how often each call was sent, by the count of the upstream.

    None if each was sent once, and the workload has no faults.
    """
    if trial.attempts is not None:
        return trial.attempts.attempts / max(1, trial.attempts.calls)
    use = trial.servers.upstream
    if use is None or use.requests is None or use.in_flight:
        return None
    if use.requests <= trial.figures.requests:
        return None
    return use.requests / max(1, trial.figures.requests)


def _above_idle(trial: Trial) -> Any:
    peak = _field("measured.peak_pss_bytes")(trial)
    idle = _field("measured.idle_pss_bytes")(trial)
    if peak is None or idle is None:
        return None
    return max(0, peak - idle)


HIGHEST_RATE = Figure(
    "highest_rate",
    "highest_requests_per_second",
    "highest rate",
    "the highest rate that kept the limits of `--find-max`",
    "per-second",
    _field("highest_rate.middle"),
    Direction("higher", "lower", less_is_better=False),
    heading="highest rate",
)

FIGURES: tuple[Figure, ...] = (
    HIGHEST_RATE,
    Figure(
        "wall",
        "wall_seconds",
        "wall time",
        "time from the start of the first request to the end of the last",
        "seconds",
        _field("measured.wall_seconds"),
        _FASTER,
        heading="wall",
        when="always",
        metric=Metric("wall_seconds"),
        compared=True,
        total=True,
        scheduled=True,
    ),
    Figure(
        "throughput",
        "requests_per_second",
        "requests per second",
        "successful requests per second, without the tail",
        "per-second",
        _field("figures.requests_per_second"),
        _FASTER_IF_MORE,
        heading="req/s",
        when="always",
        metric=Metric("requests_per_second"),
        compared=True,
        scheduled=True,
    ),
    Figure(
        "time_per_request",
        "seconds_per_request",
        "time per request",
        "inverse of requests per second; ranks the arms of a closed load",
        "seconds",
        _seconds_per_request,
        _FASTER,
        scheduled=True,
    ),
    Figure(
        "received",
        "bytes_received_per_second",
        "bytes received per second",
        "bytes of response bodies per second, without the tail",
        "bytes-per-second",
        _received,
        _FASTER_IF_MORE,
        heading="received",
        when="large bodies",
        metric=Metric("bytes_received_per_second"),
        compared=True,
        scheduled=True,
    ),
    Figure(
        "tail",
        "tail_seconds",
        "tail",
        "time from the end of the duration, or of the first shard, to the last"
        " response",
        "seconds",
        _field("figures.tail_seconds"),
        _FASTER,
        heading="tail",
        claimable=False,
        scheduled=True,
    ),
    _latency("mean", "mean latency"),
    _latency(
        "p50",
        "median latency",
        heading="p50",
        when="always",
        metric=Metric("latency_seconds", "0.5"),
        compared=True,
    ),
    _latency("p90", "90th percentile of latency"),
    _latency(
        "p95", "95th percentile of latency", metric=Metric("latency_seconds", "0.95")
    ),
    _latency(
        "p99",
        "99th percentile of latency",
        heading="p99",
        when="always",
        metric=Metric("latency_seconds", "0.99"),
        compared=True,
    ),
    _latency("p999", "99.9th percentile of latency", "; needs at least 1,000 requests"),
    _latency("max", "longest latency"),
    *_median_and_p99(
        "first_byte",
        "time to the first byte",
        "first byte",
        "{}time to the first byte of the body, or to the end of a response without one",
        needs="first_byte",
    ),
    *_STREAM_FIGURES,
    *OPEN_LOAD_FIGURES,
    Figure(
        "overhead",
        "overhead_p50_seconds",
        "median overhead",
        "median of latency minus the requested delay and one round trip of the link",
        **_quantile(
            "figures.overhead_seconds",
            "p50",
            direction=_LESS,
            resolution=0.0,
            needs="delay",
            heading="overhead",
            metric=Metric("overhead_seconds"),
        ),
    ),
    Figure(
        "elapsed",
        "elapsed_seconds_sum",
        "summed elapsed",
        "sum of the times that the library itself reports for successful requests",
        "seconds",
        _field("figures.elapsed_seconds_sum"),
        _LESS,
        heading="own elapsed",
        total=True,
        needs="elapsed",
    ),
    Figure(
        "errors",
        "errors_share",
        "share of failed requests",
        "share of finished requests that failed; failed trials count, partial ones"
        " do not",
        "share",
        _quotient("figures.failed", "figures.requests"),
        _FEWER,
        heading="errors",
        when="always",
        compared=True,
        claimable=False,
        of_failed=True,
    ),
    Figure(
        "attempts",
        "attempts_per_call",
        "attempts per call",
        "faults: attempts that reached the upstream per call, by its own count; without"
        " faults, of a client that sends failed requests again",
        "count",
        attempts_per_call,
        _FEWER,
        heading="attempts/call",
        metric=Metric("attempts_per_call"),
        cost=True,
        compared=True,
        needs="faults",
    ),
    Figure(
        "duplicates",
        "duplicates_per_call",
        "duplicates",
        "faults: times that the upstream did the work of a call again, per call: a"
        " POST that took effect twice",
        "share",
        _quotient("attempts.repeated", "attempts.calls"),
        _FEWER,
        heading="duplicates",
        metric=Metric("duplicates_per_call"),
        compared=True,
        needs="faults",
    ),
    Figure(
        "densest",
        "densest_attempts_share",
        "attempts in the densest 100 ms",
        "faults: share of the attempts that came in the densest 100 ms",
        "share",
        _field("attempts.densest_share"),
        _FEWER,
        heading="densest 100 ms",
        metric=Metric("densest_attempts_share"),
        needs="faults",
    ),
    Figure(
        "limit_late",
        "call_late_seconds",
        "lateness of the limit of a call",
        "`--call-timeout`: time by which the longest call was over its limit",
        "seconds",
        _field("figures.call_late_seconds"),
        _LESS,
        heading="limit late",
        metric=Metric("call_late_seconds"),
        needs="call_timeout",
    ),
    Figure(
        "import",
        "import_seconds",
        "import time",
        "`--cold`: time from the start of the interpreter until the libraries are"
        " imported",
        "seconds",
        _field("measured.import_seconds"),
        _FASTER,
        heading="import",
        metric=Metric("import_seconds"),
        needs="cold",
    ),
    Figure(
        "first_response",
        "first_response_seconds",
        "time to the first response",
        "`--cold`: time from the start of the interpreter to the first response,"
        " without imports of the lab",
        "seconds",
        lambda trial: trial.wall_seconds if trial.is_cold else None,
        _FASTER,
        heading="first response",
        metric=Metric("first_response_seconds"),
        needs="cold",
    ),
    Figure(
        "connections",
        "connections_opened",
        "connections opened",
        "connections that the client opened",
        "count",
        _field("measured.connections_opened"),
        _FEWER,
        heading="conns",
        when="always",
        metric=Metric("connections_opened"),
        cost=True,
        compared=True,
    ),
    Figure(
        "reuse",
        "requests_per_connection",
        "requests per connection",
        "finished requests divided by the connections opened",
        "count",
        _quotient("figures.requests", "measured.connections_opened"),
        _MORE,
        heading="req/conn",
        when="durations",
        metric=Metric("requests_per_connection"),
    ),
    # Failed requests are not counted, because those that fail fast would make the
    # others look cheap.
    Figure(
        "cpu",
        "cpu_seconds_per_request",
        "CPU time per request",
        "CPU time of the client's processes per successful request",
        "seconds",
        _cpu_per_request,
        _LESS,
        heading="CPU/req",
        when="always",
        metric=Metric("cpu_seconds_per_request"),
        cost=True,
        compared=True,
    ),
    Figure(
        "cpu_wait",
        "cpu_wait_seconds_per_request",
        "wait for a CPU per request",
        "time per request in which the client's threads could run but had no CPU (Linux"
        " run delay)",
        "seconds",
        _quotient("measured.disturbance.run_delay_seconds", "figures.requests"),
        _LESS,
    ),
    Figure(
        "cpu_total",
        "cpu_seconds",
        "CPU time",
        "CPU time of the client's processes",
        "seconds",
        _field("measured.cpu_seconds"),
        _LESS,
        total=True,
    ),
    Figure(
        "memory",
        "peak_pss_bytes",
        "peak memory",
        "peak memory, summed over the client's processes, without the sample log",
        "bytes",
        _field("measured.peak_pss_bytes"),
        _LESS,
        heading="memory",
        metric=Metric("peak_memory_bytes"),
        cost=True,
        compared=True,
    ),
    Figure(
        "rss",
        "peak_rss_bytes",
        "peak RSS",
        "peak resident memory, summed over the client's processes, with the sample log",
        "bytes",
        _field("measured.peak_rss_bytes"),
        _LESS,
        metric=Metric("peak_rss_bytes"),
    ),
    Figure(
        "above_idle",
        "above_idle_bytes",
        "memory above idle",
        "peak memory minus the memory after the warm-up",
        "bytes",
        _above_idle,
        _LESS,
        heading="above idle",
        when="large bodies",
        cost=True,
    ),
)
"""Every figure, in the order of tables and comparisons."""

BY_KEY = {figure.key: figure for figure in FIGURES}
EXPORTED = tuple(
    (figure, figure.metric) for figure in FIGURES if figure.metric is not None
)
COMPARED = tuple(figure for figure in FIGURES if figure.compared)
_BY_NAME = BY_KEY | {figure.name: figure for figure in FIGURES}


def ranked_by(trials: Iterable[Trial] = ()) -> Figure:
    """Return the figure that arms with these trials are ranked by.

    It is the time per request, except for open loads and streams. The schedule of an
    open load decides its wall time, so its p99 from the planned start ranks arms. The
    server decides how long a stream takes, so the CPU time of an event ranks arms.
    """
    for trial in trials:
        if trial.highest_rate is not None:
            break
        if trial.figures.stream is not None and not trial.is_cold:
            return _CPU_PER_EVENT
        if trial.figures.open_load is not None:
            return BY_KEY["p99"]
    return BY_KEY["time_per_request"]


def cost_of(trial: Trial) -> float:
    """Return the seconds that rank a finished trial's arm.

    In a search, these are the seconds per request.
    """
    if trial.highest_rate is not None:
        return 1 / trial.highest_rate.middle
    return ranked_by([trial]).of(trial) or 0.0


def find(name: str, field: str, value: str = "") -> Figure:
    """Return the figure with that key or full name.

    Raise FieldError about `field` and its `value` if there is none.
    """
    if name not in _BY_NAME:
        known = ", ".join(BY_KEY)
        raise FieldError([field], f"{name!r} is not one of {known}", value=value)
    return _BY_NAME[name]


def of_claim(name: str) -> Figure:
    """Return the figure with that key or full name that claims may compare.

    Raise ValueError if there is none.
    """
    figure = _BY_NAME.get(name)
    if figure is None or not figure.claimable:
        known = ", ".join(candidate.key for candidate in FIGURES if candidate.claimable)
        raise ValueError(f"{name!r} is not one of {known}")
    return figure
