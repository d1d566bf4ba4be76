"""The short form of a report: each caution has a phrase in the line of cautions."""

from __future__ import annotations

import ast
from pathlib import Path

from clientlab.judging import cautions
from clientlab.reports.cautions_in_brief import PHRASES
from clientlab.results.bottleneck import Bound


def test_every_caution_of_the_lab_has_its_words():
    """A kind that has none would be shown as its key."""
    trees = [ast.parse(path.read_text()) for path in Path(cautions.__file__).parent.glob("*.py")]
    named = {
        word.value.value
        for tree in trees for call in ast.walk(tree) if isinstance(call, ast.Call)
        for word in call.keywords if word.arg == "kind" and isinstance(word.value, ast.Constant)
    }  # fmt: skip
    assert len(named) > 40
    assert named <= PHRASES.keys()
    assert PHRASES.keys() - named <= {*Bound.__args__}
