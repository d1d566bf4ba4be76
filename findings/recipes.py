"""The runs that README and docs/recipes.md show: their commands, their stored run files, and what is quoted of them.

`python -m findings.recipes [NAME …]` measures the commands, all or those of the names, and stores their runs.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from rich.console import Console

from clientlab import units
from clientlab.analysis.decisions import decision_of
from clientlab.judging.judgement import read_judged, with_judgement
from clientlab.reports import as_terminal
from clientlab.reports.contents import text_sections
from clientlab.reports.markdown import table
from clientlab.reports.rows import Row, bottleneck_name, groups_of
from clientlab.reports.sections import Report
from clientlab.results.document import Run
from clientlab.results.figures import BY_KEY
from findings.storing import refuse_changed_code, store

_ROOT = Path(__file__).parents[1]
RUNS = Path(__file__).parent / "shown"
PAGE = _ROOT / "docs" / "recipes.md"
DEMO = "demo"
_COLUMNS = 100
_LEFT_OUT = "…"
_BETWEEN = 3
"""Lines from the end of a table to the rule of one with its further columns: two empty ones and its head."""

UNMEASURED = "*Not measured yet: `scripts/recipes {name}` puts the output here.*"

_SHOWN = re.compile(r"```sh\n((?:(?!```).)*?)```\n+<!-- generated: output-([a-z-]+) -->", re.DOTALL)
_FILE = re.compile(r"<!-- (\S+\.(?:py|toml)) -->\n```\w+\n(.*?)```", re.DOTALL)


def commands() -> dict[str, str]:
    """Name → the lines of shell that the documentation shows directly above the output of that name."""
    return {DEMO: "clientlab run demo\n"} | {name: block for block, name in _SHOWN.findall(_page())}


def files() -> dict[str, str]:
    """Name → text of each file that the page's commands need."""
    return dict(_FILE.findall(_page()))


def run_file(name: str) -> Path:
    """The stored run of a command."""
    return RUNS / f"{name}.json.gz"


@cache
def stored_run(name: str) -> Run:
    """The stored run, judged by today's rules."""
    return with_judgement(read_judged(run_file(name)))


def output(name: str) -> str:
    """What the command prints, up to the end of its first table, and the answer; … is where lines are left out.

    Of a command that was not measured yet, a line that states this.
    """
    if not run_file(name).exists():
        return UNMEASURED.format(name=name)
    run = stored_run(name)
    lines = _printed(as_terminal.render(run))
    end = _end_of_table(lines)
    shown = [*lines[:end], _LEFT_OUT]
    for sentence in (one for section in text_sections(Report(run)) for one in section.sentences):
        answer = _printed(sentence)
        shown += [] if answer[0] in lines[:end] else answer
    return "\n".join(["```text", *shown, "```"])


def _end_of_table(lines: list[str]) -> int:
    """Index of the line behind the first table, and behind its further columns where it did not fit into one."""
    rules = [index for index, line in enumerate(lines) if line.lstrip().startswith("──")]
    end = 0
    for rule in rules:
        if end and rule > end + _BETWEEN:
            break
        end = next((index for index in range(rule, len(lines)) if not lines[index]), len(lines))
    return end


def _printed(what: object) -> list[str]:
    """Lines of a terminal, without the spaces at their ends."""
    file = io.StringIO()
    Console(file=file, width=_COLUMNS, color_system=None, legacy_windows=False).print(
        what, highlight=False, markup=False
    )
    return [line.rstrip() for line in file.getvalue().splitlines()]


def demo_table() -> str:
    """The demo's answer on its first route, and a table of seven columns; or that it was not measured yet."""
    if not run_file(DEMO).exists():
        return UNMEASURED.format(name=DEMO)
    group = groups_of(stored_run(DEMO))[0]
    rate, p99, cpu = (BY_KEY[key] for key in ("throughput", "p99", "cpu"))
    heads = ("strategy", "c", "requests/s", "x fastest of c (95 %)", "p99", "CPU/request", "bottleneck")
    cells = [
        (
            row.name,
            str(row.concurrency),
            row.text(rate),
            "1" if row.fastest else units.ratio_of(row.ratio),
            row.text(p99),
            row.text(cpu),
            bottleneck_name(row.verdict, row.shares),
        )
        for row in group.rows
    ]
    fastest = "; ".join(f"with {group.place_of(rows[0])}, {_fastest(rows)}" for rows in group.by_load)
    return f"**The fastest: {fastest}.**\n\n{table(heads, cells, texts=[6])}"


def _fastest(rows: Sequence[Row]) -> str:
    """The fastest arm, and those that are not surely slower."""
    return " or ".join(row.name for row in rows if row.fastest or decision_of(row.ratio).word != "slower")


def _page() -> str:
    return PAGE.read_text(encoding="utf-8")


def measure(name: str) -> None:
    """Run the shown lines in a folder of their own, and store the run. Raises CalledProcessError, and SystemExit."""
    refuse_changed_code()
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as folder:
        for file, text in files().items():
            (Path(folder) / file).write_text(text, encoding="utf-8")
        script = f"set -eu\n{commands()[name]}"
        subprocess.run(["bash", "-c", script], cwd=folder, env={**os.environ, "PATH": programs}, check=True)
        store(Path(folder), run_file(name), most_trials=0)


if __name__ == "__main__":
    if unknown := set(sys.argv[1:]) - set(commands()):
        sys.stderr.write(f"recipes: no output {min(unknown)!r} in {PAGE.name}; there are {', '.join(commands())}\n")
        raise SystemExit(2)
    for chosen in sys.argv[1:] or commands():
        measure(chosen)
