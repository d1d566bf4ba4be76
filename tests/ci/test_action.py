"""The action for GitHub: bash runs its scripts as a runner does, with two wheels and a
local server.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from clientlab.conformance.server import counting_server
from running import ROOT

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
SCRIPTS = {step["name"]: step for step in STEPS if "run" in step}
PAGE = (ROOT / "docs" / "comparing-runs.md").read_text(encoding="utf-8")
WORKFLOWS = [
    text
    for text in map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
    if "jobs" in text
]
PINNED = re.compile(
    r"uses: (?:[\w-]+/[\w-]+@[0-9a-f]{40}  ?# v\d+\.\d+\.\d+|OWNER/clientlab@COMMIT)$"
)
PROGRAM = Path(sys.executable).with_name("clientlab")
EXPRESSION = re.compile(r"\$\{\{ (\S+) \}\}")


@dataclass
class Runner:
    """A runner that goes through the steps of the action: its inputs, outputs and
    files.
    """

    folder: Path
    inputs: dict[str, str]
    source: Path = ROOT
    outputs: dict[str, str] = field(default_factory=dict)
    log: str = ""

    @property
    def summary(self) -> str:
        """The text for the page of the job."""
        return (self.folder / "summary").read_text(encoding="utf-8")

    def run(self, *names: str) -> int:
        """Run these steps, or all, until one fails.

        Return the exit code of the last.
        """
        for name in names or SCRIPTS:
            if code := self._step(SCRIPTS[name]):
                return code
        return 0

    def _step(self, step: dict) -> int:
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
        }
        own |= {
            name: EXPRESSION.sub(self._value, text)
            for name, text in step["env"].items()
        }
        files = {
            f"GITHUB_{name}": self.folder / name for name in ("OUTPUT", "STEP_SUMMARY")
        }
        files["GITHUB_STEP_SUMMARY"] = self.folder / "summary"
        files["GITHUB_OUTPUT"].write_text("")
        script = self.folder / "script"
        script.write_text(step["run"], encoding="utf-8")
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=self.folder,
            check=False,
            timeout=100,
            env=own | {name: str(path) for name, path in files.items()},
            capture_output=True,
            text=True,
        )
        for line in files["GITHUB_OUTPUT"].read_text().splitlines():
            name, _, value = line.partition("=")
            self.outputs[f"steps.{step.get('id')}.outputs.{name}"] = value
        self.log += ended.stdout + ended.stderr
        return ended.returncode

    def _value(self, expression: re.Match[str]) -> str:
        known = {
            "github.action_path": str(self.source),
            "runner.temp": str(self.folder),
            **self.outputs,
        }
        name = expression[1].removeprefix("inputs.")
        return self.inputs[name] if name != expression[1] else known[name]

    def output(self, name: str) -> Path:
        """Return the path in an output of the action."""
        return Path(EXPRESSION.sub(self._value, ACTION["outputs"][name]["value"]))


def runner(folder: Path, source: Path = ROOT, **given: str) -> Runner:
    """Return a runner with the action's defaults and other inputs.

    An underscore stands for a hyphen.
    """
    inputs = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()}
    inputs |= {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "strategies": "urllib3\n",
    }
    inputs |= {"base": "base.whl", "head": "head.whl", "program": str(PROGRAM)}
    return Runner(
        folder,
        inputs | {name.replace("_", "-"): text for name, text in given.items()},
        source,
    )


def wheel(folder: Path, version: str, more: str = "") -> str:
    """Pack the installed urllib3 as a wheel of that version, with more code
    at its end.
    """
    package = Path(str(distribution("urllib3").locate_file("urllib3")))
    info = f"urllib3-{version}.dist-info"
    path = folder / f"urllib3-{version}-py3-none-any.whl"
    files = {
        f"urllib3/{one.relative_to(package)}": one.read_text()
        for one in package.rglob("*.py")
    }
    files["urllib3/__init__.py"] += more
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: urllib3\nVersion: {version}\n"
    )
    files[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag:"
        " py3-none-any\n"
    )
    files[f"{info}/RECORD"] = "".join(
        f"{name},,\n" for name in [*files, f"{info}/RECORD"]
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return str(path)


SLOW = """
_request = PoolManager.request
def _slow(*words, **named):
    sum(range(400_000))
    return _request(*words, **named)
PoolManager.request = _slow
"""


@pytest.mark.real
@pytest.mark.release
@pytest.mark.timeout(300)  # builds and installs the lab and its libraries
def test_the_action_installs_the_lab(tmp_path, monkeypatch):
    words = [
        "build",
        "--quiet",
        "--no-build-isolation",
        "--wheel",
        "--python",
        sys.executable,
        "--out-dir",
        tmp_path,
    ]
    subprocess.run([PROGRAM.with_name("uv"), *words, ROOT], check=True, timeout=60)
    (lab,) = tmp_path.glob("clientlab-*.whl")
    monkeypatch.setenv("PATH", f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("UV_CONSTRAINT", str(ROOT / "requirements" / "development.txt"))
    job = runner(tmp_path, lab, program="")
    assert job.run("Check the inputs", "Install clientlab") == 0, job.log
    assert Path(job.outputs["steps.install.outputs.program"]).exists()


@pytest.mark.real
@pytest.mark.release
def test_a_slower_head_fails_and_the_comment_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "base.txt").write_text(wheel(tmp_path, "2.98"))
    head = wheel(tmp_path, "2.99", SLOW)
    with counting_server() as server:
        job = runner(
            tmp_path,
            base="base.txt",
            head=head,
            url=server.url,
            rounds="3",
            options="--requests=40\n",
        )
        assert job.run() == 1, job.log
    comment = job.output("comment").read_text(encoding="utf-8")
    # CPU time, since a busy machine disturbs it less than throughput.
    failed = [
        line for line in comment.splitlines() if line.startswith("- FAILED: cpu +2%")
    ]
    assert ["head" in line for line in failed] == [True]
    assert "urllib3 2.99" in comment
    assert job.summary == comment
    assert (
        job.output("report").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    )
    failures = [
        case.get("name")
        for case in ET.parse(job.output("junit")).iter("testcase")  # noqa: S314
        if len(case)
    ]
    assert "cpu +2% (urllib3 in head)" in failures
    assert job.log.splitlines()[-1].startswith("::error title=clientlab::")


GH = """#!/bin/sh
case "$*" in
*--paginate*) cat comments.json ;;
*) echo "$@" >>called ;;
esac
"""


@pytest.mark.real
@pytest.mark.parametrize(("workflow", "replaced"), [("speed", "7"), ("other", None)])
def test_the_comment_replaces_that_of_its_own_workflow_and_no_other(
    workflow, replaced, tmp_path, monkeypatch
):
    monkeypatch.setenv("GITHUB_JOB", "a-job>")
    lines = {}
    for name in ("speed", workflow):
        (tmp_path / "lab").write_text(
            '#!/bin/sh\nprintf "The question\\n" >comment.md; : >report.html; exit 3\n'
        )
        (tmp_path / "lab").chmod(0o755)
        monkeypatch.setenv("GITHUB_WORKFLOW", name)
        job = runner(tmp_path, program="./lab", python="3.13")
        job.outputs |= {
            "steps.check.outputs.folder": ".",
            "steps.install.outputs.program": "./lab",
        }
        assert job.run("Write the comment") == 0, job.log
        lines[name] = (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert lines["speed"].splitlines()[-1] == "<!-- clientlab: speed/a_job_/3.13 -->"
    bot = {"login": "github-actions[bot]"}
    person = {"login": "somebody"}
    bodies = (
        (5, bot, "of another tool"),
        (7, bot, lines["speed"].strip()),
        (8, person, lines["speed"]),
    )
    comments = [
        {"id": number, "user": user, "body": body} for number, user, body in bodies
    ]
    (tmp_path / "comments.json").write_text(json.dumps(comments))
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    script = WORKFLOWS[0]["jobs"]["speed"]["steps"][-1]["run"]
    own = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "GH_REPO": "o/r",
        "NUMBER": "3",
        "COMMENT": "comment.md",
    }
    subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=os.environ | own,
        check=True,
    )
    called = (tmp_path / "called").read_text()
    if replaced:
        assert (
            called == "api --silent --method PATCH repos/o/r/issues/comments/7 --field"
            " body=@comment.md\n"
        )
    else:
        assert called == "pr comment 3 --body-file comment.md\n"


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("base", "\n"),
        ("head", "--index-url=http://evil"),
        ("options", "--env=base=/"),
        ("options", "--fail-on=p99 +1%"),
        ("options", "--rounds=4"),
        ("options", "--url=http://a"),
        ("python", "3.10"),
        ("rounds", "3\n::set-env name=A::b"),
        ("python", "$(touch pwned)"),
        ("url", "ftp://x"),
    ],
)
def test_an_invalid_input_is_refused_in_one_line(name, value, tmp_path):
    job = runner(tmp_path, **{name: value})
    assert job.run("Check the inputs") == 2
    assert job.log.startswith(f"::error title=clientlab::input {name} is ")
    assert job.log.count("\n") == 1
    assert not (tmp_path / "pwned").exists()


@pytest.mark.real
def test_only_the_environments_have_a_free_threaded_python(tmp_path, monkeypatch):
    """The lab itself needs libraries without wheels for it."""
    (tmp_path / "uv").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    job = runner(tmp_path, python="3.13t", program="")
    assert (
        job.run("Check the inputs", "Install clientlab", "Build the environments") == 0
    ), job.log
    built = re.findall(r"^venv .* --python (\S+) .*/(\w+)$", job.log, re.MULTILINE)
    assert built == [("3.13", "lab"), ("3.13t", "base"), ("3.13t", "head")]


@pytest.mark.real
def test_text_that_looks_like_a_command_is_passed_on_as_a_word(tmp_path):
    """No shell sees the strategy, and the lab refuses it with exit code 2."""
    job = runner(
        tmp_path, strategies='$(touch pwned)\n`touch pwned`\n";touch pwned;"\n'
    )
    assert job.run("Check the inputs", "Install clientlab", "Measure") == 2
    assert "strategy '$(touch pwned)' is unknown" in job.log
    assert not (tmp_path / "pwned").exists()


def test_no_script_has_an_expression_and_every_action_is_pinned():
    """An expression would be replaced before bash reads the script, and a tag can be
    moved.
    """
    assert [
        step["name"]
        for step in SCRIPTS.values()
        if "${{" in step["run"] or step["shell"] != "bash"
    ] == []
    lines = [
        line.strip(" -")
        for text in ((ROOT / "action.yml").read_text(), PAGE)
        for line in text.splitlines()
    ]
    uses = [line for line in lines if line.startswith("uses: ")]
    assert len(uses) >= 4
    assert [line for line in uses if not PINNED.fullmatch(line)] == []


@pytest.mark.real
def test_shellcheck_finds_nothing():
    program = shutil.which("shellcheck") or PROGRAM.with_name("shellcheck")
    for name, step in SCRIPTS.items():
        words = [program, "--shell=bash", "-"]
        found = subprocess.run(
            words, input=step["run"], text=True, capture_output=True, check=False
        )
        assert found.stdout == "", name


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=[one["name"] for one in WORKFLOWS])
def test_the_workflows_of_the_page_give_the_inputs_of_the_action(workflow):
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    (lab,) = [
        step for step in steps if step.get("uses", "").startswith("OWNER/clientlab@")
    ]
    assert {
        name for name, spec in ACTION["inputs"].items() if spec.get("required")
    } <= set(lab["with"])
    assert set(lab["with"]) <= set(ACTION["inputs"])
    assert set(re.findall(rf"steps\.{lab['id']}\.outputs\.(\w+)", PAGE)) <= set(
        ACTION["outputs"]
    )
