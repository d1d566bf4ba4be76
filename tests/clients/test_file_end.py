"""The end of what another process has written."""

from __future__ import annotations

import pytest

from clientlab.child_processes import MOST_OUTPUT, last_lines


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", ""),
        (b"one\ntwo", "one\ntwo"),
        (b"x" * MOST_OUTPUT, "x" * MOST_OUTPUT),
        (b"x" * MOST_OUTPUT + b"\nlast\n", "last\n"),
        (b"first\n" + b"x" * (MOST_OUTPUT - 1) + b"\n", "x" * (MOST_OUTPUT - 1) + "\n"),
        (b"x" * (MOST_OUTPUT + 1), ""),
        (b"x" * MOST_OUTPUT + b"\xff", ""),
    ],
)
def test_only_whole_lines_of_the_end_are_read(content, found, tmp_path):
    """A line that began before could be half a secret."""
    file = tmp_path / "log"
    file.write_bytes(content)
    assert last_lines(file) == found
