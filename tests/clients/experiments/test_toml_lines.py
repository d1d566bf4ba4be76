"""The line of a key in a TOML text, found with the standard library's parser."""

from __future__ import annotations

import pytest

from clientlab.experiments.file import line_of

TEXT = '''# a comment
name = "it"
rounds = 3 # of all

[workloads.small]
path = """/
[workloads.large]
"""
requests = [
    1,
    # two
    2,
]

[workloads."large"]
"delay" = "5ms"

[[parts]]
one = 1
[[parts]]
one = { two = 3 }
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("name",), 2),
        (("rounds",), 3),
        (("workloads", "small"), 5),
        (("workloads", "small", "path"), 6),
        (("workloads", "small", "requests"), 9),
        (("workloads", "small", "requests", 1), 9),
        (("workloads", "small", "requests", 7), 9),
        (("workloads", "small", "missing"), 5),
        (("workloads", "large", "delay"), 16),
        (("parts", 1), 20),
        (("parts", 1, "one", "two"), 21),
        (("missing",), None),
        ((), None),
    ],
)
def test_a_key_is_found_where_its_statement_begins(key, line):
    """Comments, tables, values of several lines, dotted and quoted keys; what is missing, in its table."""
    assert line_of(TEXT, key) == line
