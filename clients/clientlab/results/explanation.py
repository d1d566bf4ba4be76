"""Why an arm is slow, as the run document holds it.

It comes from a trial of its own after the ranked rounds, and is part of no figure.
"""

from __future__ import annotations

from pydantic import NonNegativeFloat as NotNegative
from pydantic import NonNegativeInt as Count

from clientlab.validation import MeasuredPart


class PartOfTime(MeasuredPart):
    """Seconds of a part of the time of each request."""

    mean: float
    p50: float
    p99: float


class Waits(MeasuredPart):
    """Where successful requests spent their time. The means of the parts add up."""

    requests: Count

    latency: PartOfTime
    """From the planned start in an open load, else from the real one."""

    late: PartOfTime | None = None
    """From the planned to the real start; None: a closed load."""

    to_handler: PartOfTime | None = None
    """From there until the upstream's handler began.

    It holds the client's own work, its queue or pool, connecting, the way, and the
    queue of a server whose threads are all busy. None, like the next two: the server is
    not the lab's.
    """

    in_handler: PartOfTime | None = None
    """Until the handler had its response, with the delay that was asked for."""

    to_read: PartOfTime | None = None
    """Until the client had read the response."""

    asked: PartOfTime | None = None
    """The delay that was asked for; None: no delay."""

    most_at_server: Count | None = None
    """The most requests in the handler at a moment."""

    mean_at_server: NotNegative | None = None
    longest_stall: NotNegative | None = None
    """The longest time for which an event loop ended and began no request although it
    had an answer; None: the client has no event loop.
    """


class Growth(MeasuredPart):
    """Growth per 1,000 requests: its mean and 95 % interval over parts of a trial."""

    mean: float
    low: float
    high: float


class FunctionShare(MeasuredPart):
    """A function's shares of the samples of the client's CPU time."""

    name: str
    package: str

    own: NotNegative
    """It was the innermost function."""

    total: NotNegative
    """It, or a function that it called, was the innermost one."""


class Profile(MeasuredPart):
    """Which code took the client's CPU time."""

    samples: Count
    packages: dict[str, NotNegative]
    """Share of the innermost functions by package; modules of the standard library."""

    functions: list[FunctionShare]
    """Those with the largest totals."""

    main: FunctionShare | None = None
    """The innermost function on the heaviest path that holds most of the samples."""

    flame_graph: str
    """File name in the run's folder ``explained``, like the next one."""

    speedscope: str


class Explanation(MeasuredPart):
    """Why an arm is as fast as it is."""

    arm: str
    concurrency: Count
    waits: Waits | None = None
    profile: Profile | None = None

    cpu_seconds_per_request: NotNegative | None = None
    """While it was looked at. The ranked rounds have the figure without that."""

    run_delay_seconds: NotNegative | None = None
    """For which its threads could run and waited for a core, in all."""

    memory_growth: Growth | None = None
    """In bytes; None, like the next one: the trial was too short."""

    files_growth: Growth | None = None
    """In open files and sockets."""

    left_out: list[str] = []
    """What could not be found out, with the reason."""
