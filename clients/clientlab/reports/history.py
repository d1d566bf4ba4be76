"""The history of an experiment in words and rows: its answer, what changed, and how far that can be trusted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from clientlab import units
from clientlab.analysis.ratios import FEWEST_ROUNDS, Estimate
from clientlab.judging.comparison import Difference
from clientlab.judging.history import ALL_ARMS, FEWEST_ARMS, SMALLEST, LineHistory, Step, Track
from clientlab.judging.thresholds import Threshold

HEADINGS = ("arm", "figure", "course", "now (95 %)", "change", "since run", "ratio (95 %)")
TEXTS = (2, 4, 5)
"""Columns of words, beside those that name a row."""
KEYS = 2

_BLOCKS = "▁▂▃▄▅▆▇█"
_STEP_MARK = "│"
_LONGEST_COURSE = 40
_MOST_CHANGES, _MOST_UPGRADES, _MOST_REASONS = 3, 4, 3


@dataclass(frozen=True)
class History:
    """The histories of an experiment's lines, the oldest first. `left_out`: lines on runs that are not among them."""

    experiment: str
    lines: Sequence[LineHistory]
    left_out: Sequence[str]

    @property
    def newest(self) -> LineHistory:
        """The line of the newest run."""
        return max(self.lines, key=lambda one: one.line.runs[-1].run.created)


def answer(history: History) -> str:
    """The answer in a sentence: since when what is another one, in the line of the newest run."""
    found = history.newest
    others = len(history.lines) - 1
    lines = f" ({others} more line{'' if others == 1 else 's'} of other surroundings)" if others else ""
    if found.changed_at:
        return f"{_change_sentence(found, found.changed_at[0])}{lines}."
    if found.missing:
        more = f"{found.missing} more run{'' if found.missing == 1 else 's'} would decide"
        return (
            f"undecided: {more}, {found.runs} in like surroundings {'is' if found.runs == 1 else 'are'} too few{lines}."
        )
    return f"no change in {found.runs} runs, {_day(found, 0)} to {_day(found, -1)}{lines}."


def _change_sentence(found: LineHistory, at: int) -> str:
    """What changed with a run, the largest first, and what came with it."""
    changes = found.changes_at(at)
    by_arm = {track.arm: [one for one in changes if one[0].arm == track.arm] for track, _ in changes}
    shown = [
        f"{arm} {', '.join(_change(track, step) for track, step in of_arm)}"
        for arm, of_arm in itertools.islice(by_arm.items(), _MOST_CHANGES)
    ]
    rest = len(by_arm) - len(shown)
    more = f"{rest} more arm{'' if rest == 1 else 's'} changed" if rest else "nothing else changed"
    came = came_with(found, at)
    with_it = f"; with it came {came}" if came else ""
    return f"since run {found.line.runs[at].run.run} of {_day(found, at)}: {', '.join([*shown, more])}{with_it}"


def _change(track: Track, step: Step) -> str:
    """How much a figure changed, and into which direction: ``12 % slower (req/s)``."""
    return f"{size(track, step)} ({heading(track)})"


def heading(track: Track) -> str:
    """The figure's short name, as tables of a run have it."""
    return track.figure.column.heading if track.figure.column else track.figure.key


def size(track: Track, step: Step) -> str:
    """The change in per cent with its word; of a share, in percentage points; of counts from 0, both values."""
    direction = track.figure.direction
    word = direction.worse if step.worse else direction.better
    if step.ratio is not None:
        return f"{units.digits(100 * abs(step.ratio.value - 1), 2)} % {word}"
    if track.figure.unit == "share" and step.difference is not None:
        return f"{units.digits(100 * abs(step.difference.value), 2)} points {word}"
    return f"{track.text(step.before)} -> {track.text(step.after)}, {word}"


def came_with(found: LineHistory, at: int) -> str:
    """The versions that are others from a run on; "" if none is."""
    upgrades = found.line.upgrades(at)
    shown = [_upgrade(one) for one in upgrades[:_MOST_UPGRADES]]
    return ", ".join([*shown, *([f"{len(upgrades) - len(shown)} more"] if len(upgrades) > len(shown) else [])])


def _upgrade(one: Difference) -> str:
    return f"{one.part} {one.before or 'none'} -> {one.after or 'none'}"


def _day(found: LineHistory, at: int) -> str:
    return day_of(found.line.runs[at].run.created)


def day_of(created: str) -> str:
    """The day of a run, in UTC."""
    return f"{datetime.fromisoformat(created).astimezone(UTC):%Y-%m-%d}"


def titles(history: History) -> list[str]:
    """The title of each line: its runs, and where they were measured."""
    found = []
    for number, one in enumerate(history.lines, start=1):
        run = one.line.runs[-1].run
        where = f"{run.surroundings.cpu_model}, {run.surroundings.cpu_usable:g} cores, {run.surroundings.python}"
        runs = f"{one.runs} run{'' if one.runs == 1 else 's'}, {_day(one, 0)} to {_day(one, -1)}"
        label = f"Line {number}: " if len(history.lines) > 1 else ""
        found.append(f"{label}{runs}, on {where}")
    return found


def reasons(found: LineHistory) -> str:
    """Why the line began, in a sentence; "" of the first one."""
    if not found.line.reasons:
        return ""
    shown = found.line.reasons[:_MOST_REASONS]
    more = len(found.line.reasons) - len(shown)
    listed = "; ".join([*shown, *([f"and {more} more"] if more else [])])
    first, before = found.line.runs[0].run.run, found.line.before
    return f"It began with run {first}, because its surroundings differ from those of {before}: {listed}."


def rows(found: LineHistory, tracks: Sequence[Track]) -> Iterator[tuple[str, ...]]:
    """A row for each of the tracks, with its last change. The columns are `HEADINGS`."""
    for track in tracks:
        last = track.steps[-1] if track.steps else None
        yield (
            track.arm,
            heading(track),
            course(track),
            now(track),
            size(track, last) if last else ("undecided" if found.missing else "none"),
            found.line.runs[last.at].run.run if last else units.UNKNOWN,
            _ratio(last) if last else units.UNKNOWN,
        )


def brief_order(found: LineHistory) -> list[Track]:
    """The tracks of the short form: those that changed, and the first figure of each arm."""
    shown, arms = [], set()
    for track in in_order(found):
        if track.steps or track.arm not in arms:
            shown.append(track)
        arms.add(track.arm)
    return shown


def in_order(found: LineHistory) -> list[Track]:
    """The tracks by arm, what the arms have in common last."""
    arms = [*found.line.arms, ALL_ARMS]
    return sorted(found.tracks, key=lambda track: arms.index(track.arm))


def now(track: Track) -> str:
    """The level of the newest run that has the figure, with the interval from its rounds."""
    level = next((one for one in reversed(track.levels) if one is not None), None)
    if level is None:
        return units.UNKNOWN
    ends = level.interval
    return track.text(level.value) + (f" ({' to '.join(map(track.text, ends))})" if ends else "")


def _ratio(step: Step) -> str:
    if step.ratio is not None:
        return units.ratio_of(step.ratio)
    if step.difference is None:
        return units.UNKNOWN
    ends = step.difference.interval
    return units.signed(step.difference.value) + (f" ({' to '.join(map(units.signed, ends))})" if ends else "")


def course(track: Track) -> str:
    """The levels of the newest runs as blocks, with a mark before each run with a change."""
    first = max(0, len(track.levels) - _LONGEST_COURSE)
    shown = track.levels[first:]
    known = [level.value for level in shown if level is not None]
    if not known:
        return ""
    low, span = min(known), max(known) - min(known)
    marks = {step.at for step in track.steps}
    return "".join(
        (_STEP_MARK if first + place in marks else "") + _block(level, low, span) for place, level in enumerate(shown)
    )


def _block(level: Estimate | None, low: float, span: float) -> str:
    if level is None:
        return " "
    return _BLOCKS[round((level.value - low) / span * (len(_BLOCKS) - 1))] if span else _BLOCKS[3]


def earlier(found: LineHistory) -> list[str]:
    """A sentence for each older change of the line."""
    return [f"{_change_sentence(found, at)}." for at in found.changed_at[1:]]


def doubts(found: LineHistory) -> Iterator[str]:
    """What is judged, how often that is wrong, and which changes stay unseen."""
    if any(track.relative for track in found.tracks):
        yield (
            "A change is judged by an arm's ratio to the median of the other arms of its run, since runs differ as a "
            f"whole; what all arms have in common is the row '{ALL_ARMS}', 1 for the usual. Connections and errors are "
            "judged as they are."
        )
    else:
        yield (
            f"With fewer than {FEWEST_ARMS} arms, levels are judged as they are: a change of the machine that its "
            "surroundings do not show looks like one of the arm."
        )
    yield (
        f"Of 100 histories without a change, 95 show none, over all {found.series} series that vary. That holds if "
        "runs differ by chance, and not by a trend. A change may have come one or two runs earlier or later."
    )
    if found.missing:
        yield f"{found.runs} runs cannot show a change; {found.missing} more would show one in their middle."
        return
    if found.soonest is not None:
        smallest = _short_share(SMALLEST)
        yield f"A change shows {found.soonest} runs after it at the earliest. Changes below {smallest} are left out."
    seen = [
        f"{figure.key} {' to '.join(dict.fromkeys(_short_share(one) for one in ends))}"
        for figure, *ends in found.detectable()
    ]
    if seen:
        smallest = "the smallest change in the middle that shows in 80 of 100 histories"
        yield f"At this noise, {smallest} is: {', '.join(seen)}."
    few = sum(len(values) < FEWEST_ROUNDS for past in found.line.runs for values in past.values.values())
    if few:
        yield f"Levels of fewer than {FEWEST_ROUNDS} rounds have no interval; a level is a run's, whatever its rounds."


def _short_share(part: float) -> str:
    return f"{100 * part:.2g} %"


def failures(history: History, thresholds: Sequence[Threshold]) -> list[str]:
    """A line for each threshold that the last change of an arm in the newest line is beyond."""
    found = history.newest
    lines = []
    for one in thresholds:
        for track in found.tracks:
            if (
                track.figure is one.figure
                and one.applies_to(track.arm)
                and track.steps
                and _beyond(track.steps[-1], one)
            ):
                step = track.steps[-1]
                since = found.line.runs[step.at].run.run
                lines.append(f"FAILED: {one.text} · {track.arm}: {size(track, step)} since run {since}, {_ratio(step)}")
    return lines


def _beyond(step: Step, threshold: Threshold) -> bool:
    """Whether a change is for the worse, and larger than the threshold permits."""
    if not step.worse:
        return False
    if step.ratio is None:
        return abs(step.after - step.before) > threshold.value
    grown = step.ratio.value - 1
    return grown > threshold.value if threshold.figure.less_is_better else -grown > threshold.value
