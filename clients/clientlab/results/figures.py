"""Figures: the numbers of one finished trial, each defined once and read by tables,
charts, metrics and claims.

A new figure is an entry of `FIGURES`, and the code that measures it. A figure can be a
lower bound ("≥ 300 ms"): a quantile that falls on a failed request is one, because
nobody knows how long its answer would have taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import mean, median
from typing import Any, Literal

from clientlab import units
from clientlab.errors import FieldError
from clientlab.trial.result import Trial
from clientlab.units import Unit
from clientlab.workload.values import Link
from clientlab.workload.workload import Workload

When = Literal["always", "known", "large bodies", "durations"]
"""Show a column always, if a trial has the figure, if bodies have 1 MiB or more, or if
numbers of requests differ.
"""


@dataclass(frozen=True)
class Direction:
    """Which way is good, and the words for a change for the better and for
    the worse.
    """

    better: str
    worse: str
    less_is_better: bool = True


_FASTER = Direction("faster", "slower")
_FASTER_IF_MORE = Direction("faster", "slower", less_is_better=False)
_LESS = Direction("less", "more")
_FEWER = Direction("fewer", "more")
_MORE = Direction("more", "fewer", less_is_better=False)


@dataclass(frozen=True)
class Column:
    """A column of a run's table."""

    heading: str
    when: When = "always"


@dataclass(frozen=True)
class Metric:
    """The gauge ``clientlab_run_NAME``.

    `quantile`: the value of its label of that name, if it has one.
    """

    name: str
    quantile: str | None = None

    @property
    def name_at_least(self) -> str:
        """The name of the gauge for lower bounds, which must not look like values:
        ``latency_at_least_seconds``.
        """
        stem, _, unit = self.name.rpartition("_")
        return f"{stem}_at_least_{unit}"


@dataclass(frozen=True)
class Figure:
    """A figure of a trial."""

    key: str  # short name, for thresholds and comparisons
    name: (
        str  # full name with its unit, for CSV and claims; users may write either name
    )
    label: str
    description: str
    unit: Unit
    of: Callable[[Trial], float | None]  # in `unit`; None if the trial does not have it
    direction: Direction
    resolution: float = 0.0  # the smallest relative difference that can be measured
    column: Column | None = None
    metric: Metric | None = None
    cost: bool = False  # the HTML report draws it beside time, as a resource
    compared: bool = False  # `clientlab compare` always shows it
    claimable: bool = True  # a claim may compare it
    total: bool = False  # it grows with the number of requests
    # The field of the workload that records it:
    needs: Literal["cold", "elapsed", "delay", "first_byte", "stream"] | None = None
    # Failed trials that sent all their requests count too, and rounds are averaged.
    of_failed: bool = False
    # The schedule of an open load decides it, so arms cannot be compared by it there.
    scheduled: bool = False
    # It ends when a request is sent, so it never holds the wait for a connection.
    before_send: bool = False
    bounded: Callable[[Trial], bool] | None = (
        None  # whether a trial has only a lower bound; None: never
    )

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
        return self.needs is None or linked or bool(getattr(workload, self.needs))

    def values(self, trials: Iterable[Trial]) -> list[float]:
        """Return the figure of each finished trial that has it, in their order.

        See `of_failed` for failed trials.
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
        """Return whether `over_rounds` is only a lower bound: it would be larger if the
        trials' bounds were.
        """
        if self.bounded is None:
            return False
        known = [
            (value, math.inf if self.bounded(trial) else value)
            for trial, value in self._known(trials)
        ]
        return bool(known) and median(least for least, _ in known) != median(
            most for _, most in known
        )

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
            if trial.status == "done" or (
                self.of_failed and trial.figures.requests and not trial.partial
            ):
                value = self.of(trial)
                if value is not None:
                    yield trial, float(value)


def _field(path: str) -> Callable[[Trial], Any]:
    """Return a function that reads a field: ``figures.open_load.dropped``.

    It returns None if a part is missing.
    """
    names = path.split(".")

    def read(trial: Trial) -> Any:
        found: Any = trial
        for name in names:
            found = None if found is None else getattr(found, name)
        return found

    return read


def _quotient(dividend: str, divisor: str) -> Callable[[Trial], float | None]:
    """Return a function that divides two fields.

    It returns None if one of them is missing or the second is 0.
    """
    upper, lower = _field(dividend), _field(divisor)
    return lambda trial: (
        None
        if upper(trial) is None or not lower(trial)
        else upper(trial) / lower(trial)
    )


def _quantile(part: str, name: str, **others: Any) -> dict[str, Any]:
    """Return the fields of a figure that is a quantile of a `part` of trials, with
    `others` of its fields.
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
    fields = _quantile("figures.latency_seconds", key, **others)
    return Figure(key, f"latency_{key}_seconds", label, label + condition, **fields)


def _median_and_p99(
    key: str, label: str, heading: str, meaning: str, of: str = "figures", **others: Any
) -> Iterator[Figure]:
    """Yield two quantiles of the times in the field `key`_seconds of a part of trials.

    `heading`: of their columns.
    """
    for name, words, short, quantile in (
        ("p50", "median ", "", "0.5"),
        ("p99", "99th percentile of the ", "p99 ", "0.99"),
    ):
        shown = {
            "column": Column(f"{short}{heading}", "known"),
            "metric": Metric(f"{key}_seconds", quantile),
        }
        fields = _quantile(f"{of}.{key}_seconds", name, **shown, **others)
        yield Figure(
            f"{key}_{name}",
            f"{key}_{name}_seconds",
            words + label,
            meaning.format(words),
            **fields,
        )


def _cpu_per_event(trial: Trial) -> float | None:
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
    column=Column("CPU/event", "known"),
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
    # Of streams, only that one counts failed ones, and the wait for a connection.
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
        column=Column("together", "known"),
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

_SENT, _LATE = "figures.open_load.sent_seconds", "figures.open_load.lateness_seconds"

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
        **_quantile(_SENT, "p99", column=Column("p99 sent", "known")),
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
            column=Column("late p50", "known"),
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
            column=Column("late p99", "known"),
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
        column=Column("planned/s", "known"),
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
        column=Column("achieved/s", "known"),
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
        column=Column("backlog", "known"),
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
        column=Column("dropped", "known"),
        metric=Metric("dropped_share"),
        claimable=False,
    ),
)


def _seconds_at_rate(trial: Trial) -> float:
    """Return how long the trial's successful requests take at its rate: the wall time,
    unless there is a tail.
    """
    figures = trial.figures
    if figures.tail_seconds is None or not figures.requests_per_second:
        return figures.wall_seconds or 0.0
    return figures.succeeded / figures.requests_per_second


def _cpu_per_request(trial: Trial) -> float | None:
    """Return the CPU seconds of a successful request: in the steady part, if the trial
    has one and it is known.
    """
    measured, figures = trial.measured, trial.figures
    if measured is None or not figures.succeeded:
        return None
    succeeded_share = figures.succeeded / figures.requests
    if measured.steady_requests and any(window.cycles for window in figures.windows):
        return (measured.steady_cpu_seconds or 0.0) / (
            measured.steady_requests * succeeded_share
        )
    return measured.cpu_seconds / figures.succeeded


def _seconds_per_request(trial: Trial) -> float | None:
    figures = trial.figures
    return (
        _seconds_at_rate(trial) / figures.succeeded
        if figures.succeeded > 0 and figures.wall_seconds
        else None
    )


def _received(trial: Trial) -> float | None:
    if trial.figures.bytes_received is None or not trial.figures.wall_seconds:
        return None
    return trial.figures.bytes_received / _seconds_at_rate(trial)


def _above_idle(trial: Trial) -> float | None:
    peak, idle = (
        _field("measured.peak_pss_bytes")(trial),
        _field("measured.idle_pss_bytes")(trial),
    )
    return None if peak is None or idle is None else max(0, peak - idle)


HIGHEST_RATE = Figure(
    "highest_rate",
    "highest_requests_per_second",
    "highest rate",
    "the highest rate that kept the limits of `--find-max`",
    "per-second",
    _field("highest_rate.middle"),
    Direction("higher", "lower", less_is_better=False),
    column=Column("highest rate", "known"),
)

FIGURES: tuple[Figure, ...] = (
    HIGHEST_RATE,
    Figure(
        "wall",
        "wall_seconds",
        "wall time",
        "time from the start of the first request to the end of the last",
        "seconds",
        _field("figures.wall_seconds"),
        _FASTER,
        column=Column("wall"),
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
        column=Column("req/s"),
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
        column=Column("received", "large bodies"),
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
        column=Column("tail", "known"),
        claimable=False,
        scheduled=True,
    ),
    _latency("mean", "mean latency"),
    _latency(
        "p50",
        "median latency",
        column=Column("p50"),
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
        column=Column("p99"),
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
            column=Column("overhead", "known"),
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
        column=Column("own elapsed", "known"),
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
        column=Column("errors"),
        compared=True,
        claimable=False,
        of_failed=True,
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
        column=Column("import", "known"),
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
        lambda trial: trial.figures.wall_seconds if trial.is_cold else None,
        _FASTER,
        column=Column("first response", "known"),
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
        column=Column("conns"),
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
        column=Column("req/conn", "durations"),
        metric=Metric("requests_per_connection"),
    ),
    # Per successful request: requests that fail fast must not make the others look
    # cheap.
    Figure(
        "cpu",
        "cpu_seconds_per_request",
        "CPU time per request",
        "CPU time of the client's processes per successful request",
        "seconds",
        _cpu_per_request,
        _LESS,
        column=Column("CPU/req"),
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
        column=Column("memory", "known"),
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
        column=Column("above idle", "large bodies"),
        cost=True,
    ),
)
"""Every figure, in the order of tables and comparisons."""

BY_KEY = {figure.key: figure for figure in FIGURES}
EXPORTED = tuple(
    (figure, figure.metric) for figure in FIGURES if figure.metric is not None
)
COMPARED = tuple(figure for figure in FIGURES if figure.compared)
_BY_NAME = {name: figure for figure in FIGURES for name in (figure.key, figure.name)}


def ranked_by(trials: Iterable[Trial] = ()) -> Figure:
    """Return the figure that arms with these trials are ranked by: time per request, or
    p99 in an open load.

    The schedule of an open load decides its wall time. Its p99 counts from the planned
    start. The server decides how long a stream takes, so streams are ranked by the CPU
    time of an event.
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
        raise FieldError(
            [field],
            f"{name!r} is not one of {', '.join(one.key for one in FIGURES)}",
            value=value,
        )
    return _BY_NAME[name]


def of_claim(name: str) -> Figure:
    """Return the figure with that key or full name that claims may compare.

    Raise ValueError if there is none.
    """
    figure = _BY_NAME.get(name)
    if figure is None or not figure.claimable:
        raise ValueError(
            f"{name!r} is not one of"
            f" {', '.join(one.key for one in FIGURES if one.claimable)}"
        )
    return figure
