"""Reports what an environment holds, and which strategies it can run.

The environment's own Python runs this module.

Standard input has a pickled list of pairs, strategy and workload. Standard output gets
one JSON object. Like a trial's process, it imports only the standard library, the
strategies' libraries, and modules of the lab that need no more.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import pickle
import platform
import ssl
import sys

import clientlab.trial.process  # noqa: F401 - a trial's process imports it, and must be able to
from clientlab import plugins, strategies
from clientlab.errors import LabError
from clientlab.results.surroundings import compiled_into, python_build
from clientlab.strategies import list_missing
from clientlab.text import mask_text
from clientlab.workload.workload import Workload


def main() -> None:
    """Write the report.

    What libraries print while they are imported goes to standard error.
    """
    report = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    pairs = pickle.load(sys.stdin.buffer)  # noqa: S301 - the parent process wrote it
    plugins.admit(name for name, _ in pairs)
    refusals = [_find_refusal(name, workload) for name, workload in pairs]
    packages: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        if name:  # the rest of a package that was removed has none
            version = f"{distribution.version}{_find_origin(distribution)}"
            # The first one on the path is imported.
            packages.setdefault(name.lower(), version)
    content = {
        "refusals": refusals,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "python_build": python_build(),
        "openssl": ssl.OPENSSL_VERSION,
        "packages": dict(sorted(packages.items())),
        "compiled": compiled_into(packages),
    }
    with os.fdopen(report, "w", encoding="utf-8") as file:
        json.dump(content, file)


def _find_refusal(name: str, workload: Workload) -> str | None:
    """Return why the environment cannot run this strategy, or None if it can."""
    try:
        strategy = strategies.find(name)
        missing = [distribution for distribution, _ in list_missing(strategy)]
        if missing:
            return f"strategy {name!r} needs {', '.join(missing)}; install it there"
        strategies.check_settings(strategy)
        strategies.check_capabilities(strategy, workload)
    except LabError as error:
        return str(error)
    return None


def _find_origin(distribution: importlib.metadata.Distribution) -> str:
    """Return where a distribution comes from, or "" for an index.

    A branch often has the last release's version.
    """
    # https://packaging.python.org/en/latest/specifications/direct-url/
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    place = origin.get("vcs_info", {}).get("commit_id") or origin.get("url")
    return f" ({mask_text(place)})" if place else ""


if __name__ == "__main__":
    main()
