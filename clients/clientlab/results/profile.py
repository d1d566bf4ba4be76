"""Where an arm's CPU time went, or its memory, as a profiler saw it in a trial of its own. It counts in no figure."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from clientlab.bounded_numbers import Count, NotNegative
from clientlab.results.part import MeasuredPart

MOST_FUNCTIONS = 2_000
MOST_NODES = 5_000
MOST_PROFILES = 1_000
MOST_PACKAGES = 1_000
MOST_NOTES = 20
MOST_ALLOCATING = 100

ProfileKind = Literal["cpu", "memory"]

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class ProfiledFunction(MeasuredPart):
    """A function and its shares of what the profiler saw: of the CPU time, or of the memory at its peak."""

    name: str
    package: Annotated[str, Field(description="or module of the standard library, native library, kernel")]
    own: Annotated[Share, Field(description="share of the samples, or of the bytes, of the function itself")]
    total: Annotated[Share, Field(description="share of those of the function and of all that it had called")]


class FlameNode(MeasuredPart):
    """A frame of the flame graph. Parents come first."""

    parent: Annotated[int, Field(ge=-1, le=MOST_NODES, description="place of the calling frame; -1: none")]
    function: Annotated[int, Field(ge=0, le=MOST_FUNCTIONS, description="place in the list of functions")]
    share: Annotated[Share, Field(description="of all samples, or of the memory at its peak")]


class Allocated(MeasuredPart):
    """What was allocated in the measured part of a trial, whether it was freed or not."""

    bytes: Annotated[Count, Field(description="as they were requested")]
    allocations: Count


class AllocatingFunction(Allocated):
    """A function and what it allocated itself."""

    name: str
    package: str


class Memory(MeasuredPart):
    """What a trial allocated and held in its measured part. Memory that it held before is in no number."""

    requests: Annotated[Count, Field(description="in that trial")]
    processes: Annotated[Count, Field(description="whose peaks and allocations are added")]
    peak_bytes: Annotated[Count, Field(description="most that was held at once; shares of the profile are of it")]
    allocated: Allocated
    packages: Annotated[
        dict[str, Allocated], Field(max_length=MOST_PACKAGES, description="package to what its functions allocated")
    ]
    functions: Annotated[
        list[AllocatingFunction], Field(max_length=MOST_ALLOCATING, description="those that allocated most bytes")
    ] = []

    @property
    def busiest(self) -> str | None:
        """The package that made most allocations; None without one."""
        return max(self.packages, key=lambda name: self.packages[name].allocations, default=None)


class Profile(MeasuredPart):
    """An arm under a profiler, behind the rounds. Its shares are of CPU time, or of the memory at its peak (`kind`).

    Without `packages`, the arm could not be profiled, and `reason` says why.
    """

    arm: str
    kind: ProfileKind = "cpu"
    profiler: Annotated[str, Field(description="name and version; empty: it was not there")] = ""
    views: Annotated[
        list[Literal["timer", "native", "gil", "waiting"]],
        Field(max_length=4, description="what was recorded: timer: by the trial itself; native: native frames too"),
    ] = []
    trials: Annotated[Count, Field(description="that shares come from")] = 1
    samples_per_second: Annotated[Count, Field(description="wanted; the timer has no more than the kernel's ticks")] = 0
    samples: Annotated[Count, Field(description="of threads at work; 0: of a memory profile")] = 0
    requests_per_second: Annotated[
        NotNegative | None, Field(description="in the first trial that shares come from")
    ] = None
    native_requests_per_second: Annotated[NotNegative | None, Field(description="while py-spy paused the trial")] = None
    attributed: Annotated[
        Share | None, Field(description="share of the samples, or of the bytes, with a known package")
    ] = None
    packages: Annotated[
        dict[str, Share],
        Field(max_length=MOST_PACKAGES, description="package to its share of the samples, or of the bytes"),
    ] = {}
    functions: Annotated[list[ProfiledFunction], Field(max_length=MOST_FUNCTIONS)] = []
    flame: Annotated[list[FlameNode], Field(max_length=MOST_NODES)] = []
    kernel_share: Annotated[
        Share | None, Field(description="of the CPU time, by the system's own clock: it needs no samples")
    ] = None
    gil_held: Annotated[Share | None, Field(description="share of the wall time; null: unknown")] = None
    gil_waiting: Annotated[
        NotNegative | None, Field(description="threads that wait for the GIL, in the mean; null: unknown")
    ] = None
    notes: Annotated[list[str], Field(max_length=MOST_NOTES, description="what the profiler could not see")] = []
    memory: Annotated[Memory | None, Field(description="of a memory profile")] = None
    reason: Annotated[str | None, Field(description="why the arm has no profile")] = None

    @model_validator(mode="after")
    def _is_a_tree(self) -> Self:
        for place, node in enumerate(self.flame):
            if node.parent >= place or node.function >= len(self.functions):
                raise ValueError(f"flame.{place}: its parent does not come before it, or its function is missing")
        if (self.reason is None) != bool(self.packages):
            raise ValueError("a profile has either packages, or the reason why it has none")
        if (self.memory is not None) != (self.kind == "memory" and self.reason is None):
            raise ValueError("a memory profile has what was allocated, and no other one has")
        return self

    @property
    def largest(self) -> str | None:
        """The package that took most CPU time, or held most memory; None without one."""
        return max(self.packages, key=lambda name: self.packages[name], default=None)
