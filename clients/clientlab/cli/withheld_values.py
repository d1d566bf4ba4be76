"""Values that the file of a resumed run does not hold, and that its user gives again."""

from __future__ import annotations

from urllib.parse import urlsplit

from clientlab.cli.run_options import RunOptions, target_options
from clientlab.errors import LabError
from clientlab.redaction import MARK
from clientlab.results.document import Run
from clientlab.results.plan import Plan
from clientlab.results.withheld_plan import Lacking, completed, lacking


def with_given_values(stored: Run, given: RunOptions) -> Plan:
    """The plan of a run that goes on, with the values of `--header`, and with the query of `--url` or `--path`.

    Raises LabError where a value is lacking, or is none that the run lacks.
    """
    plan = completed(stored.experiment, given.headers or {}, _path_of(stored, given))
    if (found := lacking(plan)) is None:
        return plan
    raise LabError(f"--resume {stored.run}: its file does not hold {found}; {_remedy(found, stored)}")


def _path_of(stored: Run, given: RunOptions) -> str | None:
    """The path that is given again, with its query. Raises LabError for the URL of another server."""
    if given.url is None:
        return given.path
    before, now = (urlsplit(url or "") for url in (target_options(stored.experiment.command)["url"], given.url))
    if (before.scheme, before.netloc) != (now.scheme, now.netloc):
        raise LabError(
            f"--resume with --url: the run goes on with {before.netloc or 'its own upstreams'}; leave it out"
        )
    return (now.path or "/") + (f"?{now.query}" if now.query else "")


def _remedy(found: Lacking, stored: Run) -> str:
    if found.kind == "header":
        return f"add --header '{found.name}: VALUE'"
    if found.kind == "query":
        option = "--url" if target_options(stored.experiment.command)["url"] else "--path"
        return f"add {option} with the values in place of {MARK}"
    return "measure anew"
