"""The run document and its published schema."""

from __future__ import annotations

import json

import jsonschema
import pytest

from clientlab.results.document import Run, schema
from clients.documents import a_failed_trial, a_run, a_trial


def test_the_schema_is_a_json_schema():
    """Of the dialect that it names."""
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("run", [a_run(), a_run(a_trial(), a_failed_trial("pycurl"))], ids=["new", "with trials"])
def test_run_documents_fit_the_schema_and_are_read_back_equal(run):
    """As text that any JSON reader understands."""
    text = run.model_dump_json()
    jsonschema.validate(json.loads(text), schema())
    assert Run.model_validate_json(text) == run


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 2}, "1 was expected"),
        ({"trials": [{}]}, "'arm' is a required property"),
    ],
)
def test_what_is_no_run_document_does_not_fit(change, says):
    """A field that is missing or has another value is an error."""
    document = json.loads(a_run().model_dump_json()) | change
    with pytest.raises(jsonschema.ValidationError, match=says):
        jsonschema.validate(document, schema())
